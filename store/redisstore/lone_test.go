package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
)

// A lone caller who leaves closes no connection that others use, and leaves no reply to
// the next one.
func TestLoneCallersLeave(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	same := keepsClients(t, s, n)
	left := hourly(quota, "left", "k")
	for i := range 5 {
		n.Stop()
		for range 3 { // more than there are connections for one caller
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			if err := store.Do(ctx, s, store.Take, []store.Op{left}); err == nil {
				t.Error("got an answer of a server that stands still")
			}
			cancel()
		}
		n.Continue()
		connected(t, s, 1) // a busy machine stops the server long enough to lose it
		for range 3 {
			op := hourly(quota, fmt.Sprint("rule", i), "k")
			ops := []store.Op{op}
			if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
				t.Fatal(err)
			}
		}
		if got := used(t, s, hourly(quota, fmt.Sprint("rule", i), "k")); got != 3 {
			t.Errorf("used: got %d, want 3", got)
		}
	}
	if got := used(t, s, left); got != 0 {
		t.Errorf("used by those who left: got %d, want 0", got)
	}
	same()
}

// A caller whose context is cancelled leaves at once.
func TestLoneCallerIsCancelled(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=1h")
	n.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- store.Do(ctx, s, store.Take, []store.Op{hourly(quota, "rule", "k")}) }()
	redistest.Eventually(t, "the call waits", func() bool { return s.Nodes()[0].InFlight == 1 })
	cancel()
	select {
	case err := <-gone:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want %v", err, context.Canceled)
		}
	case <-time.After(time.Minute):
		t.Error("the call waits on")
	}
	n.Continue()
}

// A connection that is lost is noticed and made again without calls, and so is a
// program that a lone caller misses.
func TestConnectionsAreMadeAgain(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	for range 2 { // the oldest first
		before := connections(t, n)
		n.Must("CLIENT", "KILL", "ID", ids.FindStringSubmatch(before[0])[1])
		redistest.Eventually(t, "it is made again", func() bool {
			now := connections(t, n)
			return len(now) >= 2 && now[0] != before[0] && now[len(now)-1] != before[len(before)-1]
		})
	}
	n.Must("SCRIPT", "FLUSH")
	take(t, s, hourly(quota, "rule", "k"))
	if got := used(t, s, hourly(quota, "rule", "k")); got != 1 {
		t.Errorf("used: got %d, want 1", got)
	}
}

// All connections log in and use the database.
func TestConnectionsLogIn(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Must("ACL", "SETUSER", "weir", "on", ">secret", "~weir:*", "-@all",
		"+evalsha", "+eval", "+time", "+ping", "+get", "+mget", "+set", "+setrange", "+unlink", "+pexpire", "+pttl", "+select")
	s := openURL(t, "redis://weir:secret@"+n.Addr()+"/5?timeout=20s")
	take(t, s, hourly(quota, "rule", "k"))
	redistest.Eventually(t, "all connections are there", func() bool { return len(connections(t, n)) >= 2 })
	list := fmt.Sprint(n.Must("CLIENT", "LIST"))
	if got := len(regexp.MustCompile(`name=weir .* db=5 .* user=weir `).FindAllString(list, -1)); got != len(connections(t, n)) || got < 2 {
		t.Errorf("got %d connections of the user in database 5, want all:\n%s", got, list)
	}
}
