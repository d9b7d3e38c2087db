package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"$5\r\na\r\nbc\r\n":                 "a\r\nbc",
		"$0\r\n\r\n":                        "",
		"$-1\r\n":                           "",
		"+OK\r\n":                           "OK",
		":7\r\n":                            "7",
		"*-1\r\n":                           "",
		"*0\r\n":                            "",
		"*2\r\n$1\r\n1\r\n*1\r\n:2\r\n":     "",
		"-NOSCRIPT No matching script.\r\n": "NOSCRIPT No matching script.",
		"$2\r\nxy\r\n+more that is another reply\r": "xy",
	} {
		size, err := wire.ReplySize([]byte(reply))
		if err != nil || size == 0 {
			t.Errorf("%q: got size %d and error %v", reply, size, err)
			continue
		}
		text, err := wire.ReplyText([]byte(reply[:size]))
		var said *script.ServerError
		if errors.As(err, &said) {
			text = said.Text
		}
		if text != want || (err != nil) != (reply[0] == '-') {
			t.Errorf("%q: got %q and error %v, want %q", reply, text, err, want)
		}
	}
	for _, bytes := range []string{"$2\r\nabc\r\n", "$-2\r\n", "$x\r\n", "\r\n", "HTTP/1.1 400 Bad Request\r\n", "*9999999999\r\n"} {
		if size, err := wire.ReplySize([]byte(bytes)); err == nil {
			t.Errorf("%q: got size %d, want an error", bytes, size)
		}
	}
}

// A reply has one size: what is behind it does not change that, and no start of
// it is taken for a whole.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		"", "\r\n", "$", "$3\r\nabc\r\n", "$-1\r\n", "$-2\r\n", "$99999999999999999999\r\n", "*2\r\n:1\r\n$1\r\nx\r\n", "*1\r\n*1\r\n*0\r\n",
		"-ERR no\r\n", "+OK\r\n+OK\r\n", "*1048577\r\n", "%1\r\n", "$1\r\nxyz",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		size, err := wire.ReplySize(b)
		if size < 0 || size > len(b) || err != nil && size != 0 {
			t.Fatalf("got size %d and error %v of %d bytes", size, err, len(b))
		}
		if size == 0 {
			return
		}
		_, _ = wire.ReplyText(b[:size])
		for n := range size {
			if got, err := wire.ReplySize(b[:n]); got != 0 || err != nil {
				t.Fatalf("the first %d bytes: got size %d and error %v", n, got, err)
			}
		}
		if got, err := wire.ReplySize(append(bytes.Clone(b[:size]), "rest"...)); got != size || err != nil {
			t.Fatalf("with more behind it: got size %d and error %v, want %d", got, err, size)
		}
	})
}
