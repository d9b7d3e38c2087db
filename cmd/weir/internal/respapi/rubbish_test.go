package respapi_test

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/respapi"
)

// Rubbish ends the connection that sends it, and no other. Its memory is bounded by what
// it has sent, not by what it announces.
func TestRubbish(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"an argument of 1 GiB":         {"*2\r\n$4\r\nPING\r\n$1073741824\r\n", "-ERR Protocol error: invalid bulk length: want at most 1048576 bytes"},
		"a billion arguments":          {"*1000000000\r\n", "-ERR Protocol error: invalid multibulk length: want at most 256 arguments"},
		"a length that overflows":      {"*99999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length: want at most 256 arguments"},
		"null as an argument":          {"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length: want at most 1048576 bytes"},
		"another type of argument":     {"*1\r\n:1\r\n", "-ERR Protocol error: expected '$' and the length of an argument"},
		"an argument without an end":   {"*1\r\n$4\r\nPINGPING\r\n", `-ERR Protocol error: expected \r\n after an argument`},
		"a length that is none":        {"*x\r\n", "-ERR Protocol error: invalid length"},
		"an argument of 1 MiB and 1":   {"*2\r\n$4\r\nPING\r\n$1048577\r\n", "-ERR Protocol error: invalid bulk length: want at most 1048576 bytes"},
		"a long line":                  {strings.Repeat("x", 5000), "-ERR Protocol error: too big inline request"},
		"a browser's request":          {"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nPING\r\n", "-ERR Protocol error: this port speaks the Redis protocol, not HTTP"},
		"half a command, and no more":  {"*2\r\n$4\r\nPING\r\n$5\r\nhe", "-ERR Protocol error: timeout while reading the rest of a command"},
		"half a line, and no more":     {"PIN", "-ERR Protocol error: timeout while reading the rest of a command"},
		"half a length, and no more":   {"*1\r\n$", "-ERR Protocol error: timeout while reading the rest of a command"},
		"a right command before it":    {command("PING") + "*x\r\n", "+PONG"},
		"nothing, for a day":           {"", ""},
		"a command without arguments":  {"*0\r\n*-1\r\n\r\n" + command("PING"), "+PONG"},
		"a command that is not there ": {command("\x00\xff\r\n"), "-ERR unknown command '\x00\xff  ': weir has WEIR.TAKE, CHECK, RECORD, REFUND, SETTLE, CANCEL, RENEW, USAGE, CL.THROTTLE, GCRA and INCREX"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				serve(t, newServer(t, "rules: []", nil), l)
				c := newClient(t, l.dial())
				defer c.Close()
				go func() { _, _ = io.WriteString(c.Conn, tc.text) }() // until the connection ends
				if tc.want == "" {
					time.Sleep(24 * time.Hour)
					if got := c.do("PING"); got != "+PONG" {
						t.Errorf("got %s, want the connection to live", got)
					}
					return
				}
				got, err := c.reply()
				if err != nil || got != tc.want {
					t.Errorf("got %q %v, want %q", got, err, tc.want)
				}
				other := newClient(t, l.dial())
				defer other.Close()
				if got := other.do("PING"); got != "+PONG" {
					t.Errorf("got %s from another connection", got)
				}
			})
		})
	}
}

// A million commands whose replies nobody reads cost no more memory than one batch of
// them, and the connection ends. Meanwhile others are served.
func TestMillionCommands(t *testing.T) {
	s := newServer(t, "rules: [{name: posts, per: [user], limit: 5, window: 1h}]", func(c *respapi.Config) { c.Patience = time.Second })
	dial := local(t, s)
	flood, other := dial(), dial()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		part := strings.Repeat(command("WEIR.TAKE", "user", "42"), 1000)
		for range 1000 {
			if _, err := io.WriteString(flood.Conn, part); err != nil {
				return
			}
		}
	}()
	for range 200 {
		if got := other.do("PING"); got != "+PONG" {
			t.Fatalf("got %s", got)
		}
	}
	<-ended
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("got %d bytes more, want at most some batches", grown)
	}
	if n := s.Stats().Calls["WEIR.TAKE"]; n == 0 || n >= 1_000_000 {
		t.Errorf("got %d takes, want those whose replies fit the connection", n)
	}
}

// Commands that have arrived are decided when the server is shut down, and each that is
// counted is answered.
func TestShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, "rules: [{name: posts, per: [user], limit: 5, window: 1h}]", nil)
		l := newPipes()
		serve(t, s, l)
		busy, idle, half := newClient(t, l.dial()), newClient(t, l.dial()), newClient(t, l.dial())
		for _, c := range []*client{busy, idle, half} {
			t.Cleanup(func() { c.Close() })
			if got := c.do("PING"); got != "+PONG" {
				t.Fatal(got)
			}
		}
		go func() { _, _ = io.WriteString(half.Conn, "*1\r\n$4\r\nPI") }()
		synctest.Wait()
		ended := make(chan error)
		go func() { ended <- s.Shutdown(t.Context()) }()
		synctest.Wait()
		if got := busy.do("WEIR.TAKE", "user", "42"); got != `*[:1 "allow" "" "0" ""]` {
			t.Errorf("got %s for a command that was on its way", got)
		}
		if err := <-ended; err != nil {
			t.Errorf("got %v", err)
		}
		for _, c := range []*client{busy, idle, half} {
			if _, err := c.reply(); err == nil {
				t.Error("got a connection that is still open")
			}
		}
	})
}
