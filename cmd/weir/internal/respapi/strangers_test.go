package respapi_test

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/respapi"
)

// lockedServer returns a server that wants a token, such as the token all.
func lockedServer(t *testing.T) *respapi.Server {
	t.Helper()
	return newServer(t, postsRule, func(c *respapi.Config) { c.Auth = auth(t) })
}

// large is a command of 240 KiB.
var large = "*16\r\n$4\r\nPING\r\n" + strings.Repeat("$16000\r\n"+strings.Repeat("x", 16000)+"\r\n", 15)

// A client that has shown no token cannot make the server keep what it sends: not in one
// large command, and not in many small ones.
func TestStrangersHoldNoMemory(t *testing.T) {
	dial := local(t, lockedServer(t))
	const n = 300
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
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
	runtime.GC()
	runtime.ReadMemStats(&after)
	// The clients of this test take some of it: a buffer of 4 KiB for each.
	if grown := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n; grown > 40<<10 {
		t.Errorf("got %d bytes more for each stranger, want at most 40 KiB", grown)
	}
	runtime.KeepAlive(clients)
}

// A client with a token may send large commands, and the memory for them is given back.
func TestLargeCommandsAreGivenBack(t *testing.T) {
	dial := local(t, lockedServer(t))
	const n = 100
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = dial()
		if got := clients[i].do("AUTH", "all"); got != "+OK" {
			t.Fatalf("got %s", got)
		}
		if got := clients[i].send(large, 1)[0]; !strings.HasPrefix(got, "-ERR wrong number of arguments") {
			t.Fatalf("got %s", got)
		}
		if got := clients[i].do("PING"); got != "+PONG" {
			t.Fatalf("got %s", got)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n; grown > 40<<10 {
		t.Errorf("got %d bytes more for each connection, want at most 40 KiB", grown)
	}
	runtime.KeepAlive(clients)
}

// A connection that shows no token ends; one that has shown one may be silent.
func TestSilentStrangers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		serve(t, lockedServer(t), l)
		known, stranger, silent := newClient(t, l.dial()), newClient(t, l.dial()), newClient(t, l.dial())
		if got := known.do("AUTH", "all"); got != "+OK" {
			t.Fatalf("got %s", got)
		}
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
