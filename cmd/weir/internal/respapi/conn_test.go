package respapi_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
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

// A command that is too large has an error of its own, and takes no memory: other callers can share its connection.
func TestLargeCommandsAreSkipped(t *testing.T) {
	t.Parallel()
	const before, after = `*[:1 "allow" "" "0" ""]`, "-ERR the command is too large: want arguments of at most 16384 bytes, and 262144 in all"
	long, longest := strings.Repeat("x", 16<<10+1), strings.Repeat("\r\n*1", 1<<18)
	for name, tc := range map[string]struct{ text, command string }{
		"a value":               {command("WEIR.TAKE", "user", long), "WEIR.TAKE"},
		"a value of 1 MiB":      {command("WEIR.TAKE", "user", longest), "WEIR.TAKE"},
		"many values":           {command(append([]string{"WEIR.TAKE"}, slices.Repeat([]string{long[1:]}, 255)...)...), "WEIR.TAKE"},
		"values and a name":     {command("weir.take", "user", longest, long, "42", "", longest), "WEIR.TAKE"},
		"a key":                 {command("CL.THROTTLE", long, "1", "2", "3"), "CL.THROTTLE"},
		"the name of a command": {command(long, "user", "42"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				resources := &access.ResourceLimits{Memory: 1 << 20}
				s := newServer(t, postsRule, func(c *respapi.Config) { c.Resources = resources })
				serve(t, s, l)
				c := newClient(t, l.dial())
				defer c.Close()
				take := command("WEIR.TAKE", "user", "42")
				got := c.send(take+tc.text+tc.text+take, 4)
				if want := []string{before, after, after, before}; !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				synctest.Wait()
				reservesNothing(t, resources)
				if st := s.Stats(); st.Protocol != 0 || tc.command != "" && st.Failed[tc.command] != 2 {
					t.Errorf("got %d protocol errors and %d failed, want 0 and 2", st.Protocol, st.Failed[tc.command])
				}
			})
		})
	}
}

// A command that is too large makes EXEC fail, so that nothing of its transaction is counted.
func TestLargeCommandInTransaction(t *testing.T) {
	t.Parallel()
	c := local(t, newServer(t, postsRule, nil))()
	take := command("WEIR.TAKE", "user", "42")
	got := c.send(command("MULTI")+take+command("WEIR.TAKE", "user", strings.Repeat("x", 17_000))+command("EXEC")+command("WEIR.USAGE", "posts", "user", "42"), 5)
	if !strings.HasPrefix(got[2], "-ERR the command is too large") || !strings.HasPrefix(got[3], "-EXECABORT") || !strings.Contains(got[4], `"used" :0`) {
		t.Errorf("got %q", got)
	}
}

// The rest of a command that is too large must come in time and be one.
func TestSkippedCommandsEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ rest, want string }{
		"slowly":                       {"", "-ERR Protocol error: timeout while reading the rest of a command"},
		"a longer argument":            {"xx", `-ERR Protocol error: expected \r\n after an argument`},
		"another type":                 {"\r\n:1\r\n", "-ERR Protocol error: expected '$' and the length of an argument"},
		"an argument that is too long": {"\r\n$1048577\r\n", "-ERR Protocol error: invalid bulk length: want at most 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				serve(t, newServer(t, postsRule, nil), l)
				c := newClient(t, l.dial())
				var writer sync.WaitGroup
				defer writer.Wait()
				defer c.Close()
				writer.Go(func() {
					_, _ = io.WriteString(c.Conn, "*3\r\n$4\r\nPING\r\n$17000\r\n"+strings.Repeat("x", 16_000))
					for range 1000 {
						time.Sleep(time.Second)
						if _, err := io.WriteString(c.Conn, "x"); err != nil {
							return
						}
						if tc.rest != "" {
							_, _ = io.WriteString(c.Conn, strings.Repeat("x", 999)+tc.rest)
							return
						}
					}
				})
				begun := time.Now()
				refused, _ := c.reply()
				got, err := c.reply()
				if !strings.HasPrefix(refused, "-ERR the command is too large") || got != tc.want || err != nil {
					t.Errorf("got %q, %q %v, want %q", refused, got, err, tc.want)
				}
				if took := time.Since(begun); took > 15*time.Second {
					t.Errorf("the rest of a command was read for %v, want about 10 s", took)
				}
				if got, err := c.reply(); err == nil {
					t.Errorf("got %s, want the end", got)
				}
			})
		})
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
