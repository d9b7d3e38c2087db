package respapi_test

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/respapi"
)

// tokenServer returns a server that needs a token, such as the token all.
func tokenServer(t *testing.T) *respapi.Server {
	t.Helper()
	return newServer(t, postsRule, func(c *respapi.Config) { c.Auth = auth(t) })
}

// large is a command of 240 KiB.
var large = "*16\r\n$4\r\nPING\r\n" + strings.Repeat("$16000\r\n"+strings.Repeat("x", 16000)+"\r\n", 15)

// heap returns the size of the heap without garbage.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func authenticate(t *testing.T, c *client) {
	t.Helper()
	if got := c.do("AUTH", "all"); got != "+OK" {
		t.Fatalf("got %s", got)
	}
}

func reservesNothing(t *testing.T, resources *access.ResourceLimits) {
	t.Helper()
	if _, memory := resources.Now(); memory != 0 {
		t.Errorf("got %d bytes reserved, want none", memory)
	}
}

// A client that has shown no token cannot make the server keep what it sends: not in one
// large command, and not in many small ones.
func TestUnauthenticatedClientsHoldNoMemory(t *testing.T) {
	dial := local(t, tokenServer(t))
	const n = 300
	before := heap()
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = dial()
		if i%2 == 0 {
			if got := clients[i].send(strings.Repeat(command("PING"), 1000), 1000)[999]; !strings.HasPrefix(got, "-NOAUTH") {
				t.Fatalf("got %s", got)
			}
			continue
		}
		go func() { _, _ = io.WriteString(clients[i].Conn, large) }() // until the connection ends
		if got, err := clients[i].reply(); err != nil || !strings.HasPrefix(got, "-NOAUTH") {
			t.Fatalf("got %s %v", got, err)
		}
	}
	// The clients of this test take some of it: a buffer of 4 KiB for each.
	if grown := (heap() - before) / n; grown > 40<<10 {
		t.Errorf("got %d bytes more for each unauthenticated client, want at most 40 KiB", grown)
	}
	runtime.KeepAlive(clients)
}

// Nor can such a client make the server keep many replies by not reading them: however short the
// commands, their replies are written before there are many.
func TestUnauthenticatedClientsHoldNoReplies(t *testing.T) {
	l := newPipes()
	serve(t, tokenServer(t), l)
	const n = 100
	before := heap()
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = newClient(t, l.dial())
		if _, err := io.WriteString(clients[i].Conn, strings.Repeat("a\n", 2000)); err != nil {
			t.Fatal(err)
		}
		if _, err := clients[i].Conn.Read(make([]byte, 1)); err != nil { // the server writes
			t.Fatal(err)
		}
	}
	if grown := (heap() - before) / n; grown > 40<<10 {
		t.Errorf("got %d bytes more for each unauthenticated client, want at most 40 KiB", grown)
	}
	for _, c := range clients {
		c.Close()
	}
}

// Nor do clients without a token make the server read past large arguments.
func TestUnauthenticatedLargeArgument(t *testing.T) {
	t.Parallel()
	c := local(t, tokenServer(t))()
	if got := c.send("*2\r\n$4\r\nPING\r\n$17000\r\n", 1)[0]; got != "-ERR Protocol error: unauthenticated bulk length: want at most 16384 bytes" {
		t.Errorf("got %s", got)
	}
	if got, err := c.reply(); err == nil {
		t.Errorf("got %s, want the end", got)
	}
}

// Incomplete large commands share the memory of large requests. A command that finds none left is
// refused, and small ones are served.
func TestIncompleteCommandsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		resources := &access.ResourceLimits{Memory: 4 << 20}
		serve(t, newServer(t, postsRule, func(c *respapi.Config) { c.Resources = resources }), l)
		const n = 20
		replies := make(chan string, n)
		for range n {
			c := newClient(t, l.dial())
			go func() { _, _ = io.WriteString(c.Conn, large[:len(large)-1]) }() // until the connection ends
			go func() {
				got, _ := c.reply()
				replies <- got
				c.Close()
			}()
		}
		synctest.Wait()
		if _, memory := resources.Now(); memory < 2<<20 || memory > 4<<20 {
			t.Errorf("got %d bytes reserved, want about 4 MiB", memory)
		}
		other := newClient(t, l.dial())
		if got := other.do("PING"); got != "+PONG" {
			t.Errorf("got %s", got)
		}
		busy := 0
		for range n {
			switch got := <-replies; {
			case strings.HasPrefix(got, "-BUSY"):
				busy++
			case got != "-ERR Protocol error: timeout while reading the rest of a command":
				t.Errorf("got %s", got)
			}
		}
		if busy == 0 || busy == n {
			t.Errorf("got %d of %d refused", busy, n)
		}
		synctest.Wait() // until the connections have ended
		if got := other.send(large, 1)[0]; !strings.HasPrefix(got, "-ERR wrong number of arguments") {
			t.Errorf("got %s", got)
		}
		if got := other.do("PING"); got != "+PONG" {
			t.Errorf("got %s", got)
		}
		synctest.Wait()
		reservesNothing(t, resources)
		other.Close()
	})
}

// The commands that a client sends in part and the replies that it does not read are counted from 16 KiB on.
func TestBuffersAreCounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sent string
		want int64 // bytes that are reserved, at least
	}{
		"a part of a command": {large[:60_000], 2 * (60_000 - 16<<10)},
		"replies":             {strings.Repeat("WEIR.TAKE user 1\r\n", 1000), 5000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				resources := &access.ResourceLimits{Memory: 4 << 20}
				serve(t, newServer(t, postsRule, func(c *respapi.Config) { c.Resources = resources }), l)
				c := newClient(t, l.dial())
				go func() { _, _ = io.WriteString(c.Conn, tc.sent) }()
				synctest.Wait()
				if _, memory := resources.Now(); memory < tc.want {
					t.Errorf("got %d bytes reserved, want at least %d", memory, tc.want)
				}
				c.Close()
				synctest.Wait()
				reservesNothing(t, resources)
			})
		})
	}
}

// A connection keeps no long names.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1025)
	dial := local(t, newServer(t, postsRule, nil))
	for _, args := range [][]string{{"CLIENT", "SETNAME", long}, {"HELLO", "2", "SETNAME", long}, {"AUTH", long}, {"AUTH", long, "token"}} {
		c := dial()
		if got := c.do(args...); !strings.HasSuffix(got, "has 1025 bytes, more than 1024") {
			t.Errorf("%s: got %s", args[0], got)
		}
	}
}

// A client with a token may send large commands, and the memory for them is given back.
func TestLargeCommandsAreGivenBack(t *testing.T) {
	dial := local(t, tokenServer(t))
	const n = 100
	before := heap()
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = dial()
		authenticate(t, clients[i])
		if got := clients[i].send(large, 1)[0]; !strings.HasPrefix(got, "-ERR wrong number of arguments") {
			t.Fatalf("got %s", got)
		}
		if got := clients[i].do("PING"); got != "+PONG" {
			t.Fatalf("got %s", got)
		}
	}
	if grown := (heap() - before) / n; grown > 40<<10 {
		t.Errorf("got %d bytes more for each connection, want at most 40 KiB", grown)
	}
	runtime.KeepAlive(clients)
}

// What a connection keeps of the commands that it has read is not the text of all that came
// with them: neither its name and its token, nor the arguments of a command before the
// last one, nor attributes that were refused.
func TestBatchesAreGivenBack(t *testing.T) {
	dial := local(t, tokenServer(t))
	padding := strings.Repeat("x", 15000)
	for name, tc := range map[string]struct {
		text    string
		replies int
	}{
		"a token":              {large + command("AUTH", "default", "all"), 2},
		"a name":               {large + command("CLIENT", "SETNAME", "worker"), 2},
		"a name in HELLO":      {large + command("HELLO", "2", "SETNAME", "worker"), 2},
		"arguments":            {large + command("PING"), 2},
		"refused attributes":   {large + command("WEIR.TAKE", "a", "1", "b", "2", "c", "3", "a", "4"), 2},
		"a take":               {large + command("WEIR.TAKE", "action", "post", "user", "42"), 2},
		"a usage":              {large + command("WEIR.USAGE", "posts", "user", "42"), 2},
		"a limit and its keys": {command("CL.THROTTLE", "a", "1", "2", "3") + large + command("CL.THROTTLE", "a", "1", "2", "3"), 3},
		"a large echo":         {command("ECHO", padding) + command("ECHO", padding) + large, 3},
	} {
		const n = 50
		clients := make([]*client, n)
		for i := range clients {
			clients[i] = dial()
			authenticate(t, clients[i])
		}
		before := heap()
		for _, c := range clients {
			got := c.send(tc.text, tc.replies)
			for _, r := range got {
				if strings.HasPrefix(r, "-NO") {
					t.Fatalf("%s: got %s", name, r)
				}
			}
		}
		if grown := (heap() - before) / n; grown > 40<<10 {
			t.Errorf("%s: got %d bytes more for each connection, want at most 40 KiB", name, grown)
		}
		for _, c := range clients {
			c.Close()
		}
	}
}

// An unauthenticated client has ten seconds for its token, and a client ten for a command, however often
// they send a little.
func TestSlowSenders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		serve(t, tokenServer(t), l)
		stranger, known, busy := newClient(t, l.dial()), newClient(t, l.dial()), newClient(t, l.dial())
		for _, c := range []*client{known, busy} {
			authenticate(t, c)
		}
		begun := time.Now()
		for time.Since(begun) < time.Minute {
			time.Sleep(3 * time.Second)
			if _, err := io.WriteString(stranger.Conn, command("PING")); err != nil {
				break
			}
			if got, err := stranger.reply(); err != nil {
				break
			} else if !strings.HasPrefix(got, "-NOAUTH") {
				t.Fatalf("got %s", got)
			}
		}
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("an unauthenticated client that keeps asking was served for %v, want about 10 s", took)
		}
		stranger.Close()

		begun = time.Now()
		var writers sync.WaitGroup
		writers.Go(func() {
			for range 1000 {
				time.Sleep(3 * time.Second)
				if _, err := io.WriteString(known.Conn, " "); err != nil {
					return
				}
			}
		})
		if got, err := known.reply(); got != "-ERR Protocol error: timeout while reading the rest of a command" {
			t.Errorf("got %s %v from half a command", got, err)
		}
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("a command without end was read for %v, want about 10 s", took)
		}
		known.Close()

		// Many commands whose ends come with the beginnings of the next are not slow.
		writers.Go(func() {
			text := strings.Repeat(command("PING"), 20)
			for len(text) > 0 {
				time.Sleep(3 * time.Second)
				n := min(len(text), 13)
				if _, err := io.WriteString(busy.Conn, text[:n]); err != nil {
					return
				}
				text = text[n:]
			}
		})
		for range 20 {
			if got, err := busy.reply(); got != "+PONG" {
				t.Errorf("got %s %v", got, err)
				break
			}
		}
		busy.Close()
		writers.Wait()
	})
}

// A connection that shows no token ends; one that has shown one may be silent.
func TestSilentClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		serve(t, tokenServer(t), l)
		known, stranger, silent := newClient(t, l.dial()), newClient(t, l.dial()), newClient(t, l.dial())
		authenticate(t, known)
		if got := stranger.do("PING"); !strings.HasPrefix(got, "-NOAUTH") {
			t.Fatalf("got %s", got)
		}
		time.Sleep(time.Hour)
		for _, c := range []*client{stranger, silent} {
			if got, err := c.reply(); !errors.Is(err, io.EOF) {
				t.Errorf("got %q %v, want the end", got, err)
			}
			c.Close()
		}
		if got := known.do("PING"); got != "+PONG" {
			t.Errorf("got %s", got)
		}
		known.Close()
	})
}

// A client that has sent a large command and the beginning of another one does not keep the memory of
// the first.
func TestBeginningAfterLargeCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		resources := &access.ResourceLimits{Memory: 4 << 20}
		serve(t, newServer(t, postsRule, func(c *respapi.Config) { c.Resources = resources }), l)
		c := newClient(t, l.dial())
		defer c.Close()
		go func() { _, _ = io.WriteString(c.Conn, large+"*1\r\n$4\r\nPI") }()
		if got, err := c.reply(); err != nil || !strings.HasPrefix(got, "-ERR wrong number") {
			t.Fatalf("got %s %v", got, err)
		}
		synctest.Wait()
		reservesNothing(t, resources)
		if got := c.send("NG\r\n", 1)[0]; got != "+PONG" {
			t.Errorf("got %s, want PONG", got)
		}
	})
}
