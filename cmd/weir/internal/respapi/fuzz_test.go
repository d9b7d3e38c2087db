package respapi_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/cmd/weir/internal/respapi"
)

// A command that is scanned is the command that was written, wherever it is cut into
// pieces, and other bytes never break the scanner.
func FuzzScan(f *testing.F) {
	for _, text := range []string{
		"*1\r\n$4\r\nPING\r\n", "PING\r\n", "GET a\n", "*0\r\n", "*-1\r\n", "*1\r\n$-1\r\n", "*99999\r\n", "*1\r\n$1073741824\r\n",
		"*2\r\n$4\r\nPING\r\n$2\r\nab\r\nrest", "*1\r\n:4\r\n", "POST / HTTP/1.1\r\n", "*1\r\n$4\r\nPINGxx", "a \"b\\x41 \\n\" c'd\\''\r\nrest", "*00000000000000000001\r\n", " \t \r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append([]byte(nil), b...)
		before := append([]byte(nil), b...)
		args, n, err := respapi.Scan(b, nil) // which may change the command
		if !bytes.Equal(b[n:], before[n:]) && err == nil {
			t.Fatalf("%q: got %q left, want %q", before, b[n:], before[n:])
		}
		if n < 0 || n > len(b) || n > respapi.MaxCommand+4096 || err != nil && n != 0 {
			t.Fatalf("%q: got %d bytes, error %v", b, n, err)
		}
		if n == 0 || err != nil {
			return
		}
		for end := range n {
			if _, used, err := respapi.Scan(before[:end], nil); used != 0 || err != nil {
				t.Fatalf("%q: got %d bytes, error %v of the first %d, want them not complete", b, used, err, end)
			}
		}
		var words []string
		for _, a := range args {
			words = append(words, string(a))
		}
		again, n, err := respapi.Scan([]byte(command(words...)), nil)
		if err != nil || n == 0 || len(again) != len(args) {
			t.Fatalf("%q: got %q %d %v when it is written again", b, again, n, err)
		}
		for i := range args {
			if !bytes.Equal(args[i], again[i]) {
				t.Fatalf("%q: got %q, want %q", b, again[i], args[i])
			}
		}
	})
}

// What is skipped of a large command is the same wherever it is cut into pieces, and no byte of the next command.
func FuzzSkip(f *testing.F) {
	f.Add([]byte("xx\r\n$3\r\nabc\r\nPING\r\n"), uint16(4), uint8(1), uint16(7))
	f.Add([]byte("$-1\r\n"), uint16(0), uint8(1), uint16(1))
	f.Add([]byte("\r\r"), uint16(2), uint8(0), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint16, arguments uint8, cut uint16) {
		n, left, err := respapi.Skip(b, [2]int{int(size), int(arguments)})
		if n < 0 || n > len(b) || left[0] < 0 || left[1] < 0 || left == [2]int{} && n < int(size) {
			t.Fatalf("%q: got %d bytes, %v left, error %v", b, n, left, err)
		}
		first, some, wrong := respapi.Skip(b[:min(int(cut), len(b))], [2]int{int(size), int(arguments)})
		if wrong == nil {
			var more int
			more, some, wrong = respapi.Skip(b[first:], some)
			first += more
		}
		if first != n || some != left || !errors.Is(wrong, err) {
			t.Fatalf("%q: got %d bytes, %v left, error %v in two pieces, want %d, %v, %v", b, first, some, wrong, n, left, err)
		}
	})
}

// FuzzConnection checks that, whatever a client sends, the connection answers with replies or ends, and another
// connection is served.
func FuzzConnection(f *testing.F) {
	for _, text := range []string{
		command("WEIR.TAKE", "action", "post", "user", "42"), command("CL.THROTTLE", "a", "1", "2", "3"), command("HELLO", "3"),
		command("WEIR.USAGE", "posts", "user", "42") + command("QUIT") + command("PING"), "*1\r\n$4\r\n", "PING\r\nPING\r\n*x",
		command("WEIR.SETTLE", "EDw2ASbum9T0Dp2GygZg2Xn0gkEAAAAAAAAAAA", "a", "b"), command("COMMAND"), command("AUTH", "\r\n", "x"),
		command("WEIR.TAKE", "user", strings.Repeat("x", 17_000)) + command("PING"),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, "rules: [{name: posts, when: {action: post}, per: [user], limit: 5, window: 1h}]", nil)
			l := newPipes()
			serve(t, s, l)
			c := newClient(t, l.dial())
			go func() {
				_, _ = c.Conn.Write(b) // the server may have ended it
				_ = c.Conn.Close()
			}()
			for {
				if _, err := c.reply(); err != nil {
					if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Fatalf("%q: got %v, want replies", b, err)
					}
					break
				}
			}
			other := newClient(t, l.dial())
			if got := other.do("PING"); got != "+PONG" {
				t.Errorf("%q: got %s from another connection", b, got)
			}
			other.Close()
		})
	})
}
