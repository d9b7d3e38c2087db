package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/redistest"
)

// directs returns the numbers of the connections that callers have to themselves,
// as n sees them: those with the older protocol.
func directs(n *redistest.Node) (ids []string) {
	for line := range strings.Lines(fmt.Sprint(n.Must("CLIENT", "LIST"))) {
		if m := direct.FindStringSubmatch(line); m != nil {
			ids = append(ids, m[1])
		}
	}
	return ids
}

var direct = regexp.MustCompile(`id=(\d+) .* name=weir .* resp=2`)

// A caller who leaves closes nothing, and leaves no reply to the next one.
func TestLoneCallersLeave(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	before := clients(t, n)
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
	if after := clients(t, n); after != before {
		t.Errorf("connections: got %s, want %s as before", after, before)
	}
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
	case <-time.After(10 * time.Second):
		t.Error("the call waits on")
	}
	n.Continue()
}

// A connection that is lost is noticed and made again without calls, and so is a
// program that a lone caller misses.
func TestDirectsAreMadeAgain(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	first := directs(n)
	if len(first) == 0 {
		t.Fatal("got no connections for lone callers")
	}
	for _, id := range first {
		n.Must("CLIENT", "KILL", "ID", id)
	}
	redistest.Eventually(t, "all are made again", func() bool {
		now := directs(n)
		return len(now) == len(first) && now[0] > first[len(first)-1]
	})
	n.Must("SCRIPT", "FLUSH")
	take(t, s, hourly(quota, "rule", "k"))
	if got := used(t, s, hourly(quota, "rule", "k")); got != 1 {
		t.Errorf("used: got %d, want 1", got)
	}
}

// The connections of lone callers log in and use the database like the others.
func TestDirectsLogIn(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Must("ACL", "SETUSER", "weir", "on", ">secret", "~weir:*", "-@all",
		"+evalsha", "+eval", "+time", "+ping", "+get", "+mget", "+getrange", "+set", "+setrange", "+del", "+pexpire", "+pttl", "+select")
	s := openURL(t, "redis://weir:secret@"+n.Addr()+"/5?timeout=20s")
	if got := len(directs(n)); got == 0 {
		t.Fatal("got no connections for lone callers")
	}
	redistest.Eventually(t, "the last command of a connection of lone callers is a call", func() bool {
		take(t, s, hourly(quota, "rule", "k"))
		list := fmt.Sprint(n.Must("CLIENT", "LIST")) // the store may just have asked for the time
		return regexp.MustCompile(`name=weir .* db=5 .* cmd=evalsha user=weir .* resp=2`).MatchString(list)
	})
}
