package redisstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
)

const quota = 1_000_000 // more than any test takes

// Calls to a server that hangs count nothing when it continues: their
// callers have given up by then.
func TestLateCallsAreNotCounted(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, at(n.Addr()))
	op := hourly(quota, "rule", "k")
	before := used(t, s, op)
	n.Stop()
	var callers sync.WaitGroup
	for range 500 {
		callers.Go(func() {
			if err := store.Do(context.Background(), s, store.Take, []store.Op{op}); err == nil {
				t.Error("got an answer from a server that stands still")
			}
		})
	}
	callers.Wait()
	n.Continue()
	if got := used(t, s, op); got != before {
		t.Errorf("used: got %d, want %d as before", got, before)
	}
}

// No call is sent to a server that hangs when the store opens. It is certain that they count nothing.
func TestServerHangsAtStart(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Stop()
	defer n.Continue()
	s := opening(t, at(n.Addr()))
	var out *store.OutageError
	if err := store.Do(t.Context(), s, store.Take, []store.Op{hourly(quota, "rule", "k")}); !errors.As(err, &out) || out.Reason != remote.CircuitOpen || !out.Uncounted {
		t.Errorf("got %+v, want an outage with the reason circuit-open, in which nothing was counted", err)
	}
}

// A server that stands still for 5 seconds under load.
func TestServerStandsStill(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, at(n.Addr()))
	op := hourly(quota, "rule", "k")
	d := drive(t, s, 16, op)
	d.answers(200)
	n.Pause(5 * time.Second)
	d.fails(300)
	d.answers(200)
	d.end()
	kept(t, used(t, s, op), d.admitted.Load())
}

// A server that is killed and comes back with nothing: its scripts are gone
// too.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, at(n.Addr()))
	op := hourly(quota, "rule", "k")
	d := drive(t, s, 16, op)
	d.answers(200)
	n.Kill()
	d.fails(300)
	n.Restart()
	before := d.admitted.Load()
	d.answers(200)
	d.end()
	kept(t, used(t, s, op), d.admitted.Load()-before)
}

// A server that is restarted at once, under load, with what it has on disk.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--appendonly", "yes", "--appendfsync", "always")
	s := openURL(t, at(n.Addr()))
	op := hourly(quota, "rule", "k")
	d := drive(t, s, 16, op)
	for range 3 {
		d.answers(200)
		n.Restart()
	}
	d.answers(200)
	d.end()
	kept(t, used(t, s, op), d.admitted.Load())
}

// A network that is slow, breaks connections, or loses everything.
func TestNetworkFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		fail func(*redistest.Proxy)
	}{
		{"delays", func(p *redistest.Proxy) { p.Delay(2 * patience) }},
		{"cuts", (*redistest.Proxy).Cut},
		{"loses everything", (*redistest.Proxy).Hold},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := redistest.Server(t)
			p := redistest.Through(t, n)
			s := openURL(t, at(p.Addr()))
			op := hourly(quota, "rule", "k")
			d := drive(t, s, 16, op)
			for range 3 {
				d.answers(200)
				test.fail(p)
				d.fails(300)
				p.Heal()
				d.answers(200)
				p.Reset()
			}
			d.answers(200)
			d.end()
			kept(t, used(t, s, op), d.admitted.Load())
		})
	}
}
