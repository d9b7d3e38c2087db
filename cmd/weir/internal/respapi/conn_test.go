package respapi_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/respapi"
)

const postsRule = "rules: [{name: posts, per: [user], limit: 5, window: 1h}]"

// Many connections are served at a time, with commands in pieces and in pipelines.
func TestConns(t *testing.T) {
	t.Parallel()
	dial := local(t, newServer(t, postsRule, nil))
	var group sync.WaitGroup
	for n := range 40 {
		c := dial()
		group.Go(func() {
			user := fmt.Sprint("u", n)
			text := strings.Repeat(command("WEIR.TAKE", "user", user), 50) + command("PING")
			for from := 0; from < len(text); {
				to := min(len(text), from+1+(from*7+n)%600)
				if _, err := io.WriteString(c.Conn, text[from:to]); err != nil {
					t.Error(err)
					return
				}
				from = to
			}
			allowed := 0
			for range 50 {
				r, err := c.reply()
				if err != nil {
					t.Error(err)
					return
				}
				if strings.HasPrefix(r, "*[:1") {
					allowed++
				}
			}
			if r, err := c.reply(); r != "+PONG" || err != nil || allowed != 5 {
				t.Errorf("%s: got %d allowed, %s %v, want 5 and +PONG", user, allowed, r, err)
			}
		})
	}
	group.Wait()
}

// Commands are answered when they fill the buffer of a connection to the byte, and when
// their client ends its side at once.
func TestConnsReadEverything(t *testing.T) {
	t.Parallel()
	dial := local(t, newServer(t, postsRule, nil))
	kept := dial()
	for _, buffer := range []int{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10} {
		for size := buffer - 2; size <= buffer+2; size++ {
			n := size / 1000
			text := strings.Repeat(strings.Repeat(" ", 994)+"PING\r\n", n)
			text += strings.Repeat(" ", size-len(text)+994) + "PING\r\n"
			text = text[len(text)-size:]
			for _, c := range []*client{kept, dial()} {
				if _, err := io.WriteString(c.Conn, text); err != nil {
					t.Fatal(err)
				}
				if c != kept {
					if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
						t.Fatal(err)
					}
				}
				for i := range n {
					if r, err := c.reply(); r != "+PONG" || err != nil {
						t.Fatalf("%d bytes, reply %d: got %s %v", size, i, r, err)
					}
				}
				if c == kept {
					continue
				}
				if r, err := c.reply(); err == nil {
					t.Fatalf("%d bytes: got %s, want the end", size, r)
				}
			}
		}
	}
}

// A client that reads late gets all replies.
func TestConnsWaitForReaders(t *testing.T) {
	t.Parallel()
	c := local(t, newServer(t, postsRule, nil))()
	const n = 30_000
	sent := make(chan error)
	go func() {
		_, err := io.WriteString(c.Conn, strings.Repeat(command("ECHO", strings.Repeat("x", 1000)), n))
		sent <- err
	}()
	want := `"` + strings.Repeat("x", 1000) + `"`
	for i := range n {
		if r, err := c.reply(); err != nil || r != want {
			t.Fatalf("reply %d: got %.20s %v", i, r, err)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// Half a command, a wrong one and QUIT end a connection, with the last reply.
func TestConnsEndConnections(t *testing.T) {
	t.Parallel()
	dial := local(t, newServer(t, postsRule, func(c *respapi.Config) {
		c.Patience = 300 * time.Millisecond
	}))
	idle := dial()
	for text, want := range map[string]string{
		"*2\r\n$4\r\nPING\r\n$5\r\nhe":      "-ERR Protocol error: timeout while reading the rest of a command",
		"*x\r\nPING\r\nPING\r\n":            "-ERR Protocol error: invalid length",
		"QUIT\r\nPING\r\n":                  "+OK",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n": "-ERR Protocol error: this port speaks the Redis protocol, not HTTP",
	} {
		c := dial()
		if _, err := io.WriteString(c.Conn, text); err != nil {
			t.Fatal(err)
		}
		r, err := c.reply()
		if err != nil || r != want {
			t.Errorf("%q: got %s %v, want %s", text, r, err, want)
		}
		if r, err := c.reply(); err == nil {
			t.Errorf("%q: got %s, want the end", text, r)
		}
	}
	if got := idle.do("PING"); got != "+PONG" {
		t.Errorf("got %s from a connection that was idle", got)
	}
	gone := dial()
	gone.Close()
	if got := idle.do("PING"); got != "+PONG" {
		t.Errorf("got %s", got)
	}
}

// Shutdown answers what has arrived, and ends connections.
func TestConnsShutdown(t *testing.T) {
	t.Parallel()
	s := newServer(t, postsRule, nil)
	dial := local(t, s)
	busy, idle := dial(), dial()
	for _, c := range []*client{busy, idle} {
		if got := c.do("PING"); got != "+PONG" {
			t.Fatal(got)
		}
	}
	if _, err := io.WriteString(busy.Conn, command("WEIR.TAKE", "user", "42")); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("got %v", err)
	}
	if r, err := busy.reply(); r != `*[:1 "allow" "" "0" ""]` || err != nil {
		t.Errorf("got %s %v for a command that had arrived", r, err)
	}
	for _, c := range []*client{busy, idle} {
		if r, err := c.reply(); err == nil {
			t.Errorf("got %s, want the end", r)
		}
	}
	if n := s.Stats().Connections; n != 0 {
		t.Errorf("got %d connections", n)
	}
}
