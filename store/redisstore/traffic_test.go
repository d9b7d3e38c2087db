package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const (
	// patience is the time-out of the stores in these tests: more than the
	// usual 10 ms, because they share the machine with the servers.
	patience = 200 * time.Millisecond

	// slack is what a caller may wait on top of that before a test fails, by a clock
	// as slow as the machine. A caller that a store forgets waits for seconds.
	slack = time.Second
)

// at returns the URL of the server at addr for these tests.
func at(addr string) string { return fmt.Sprintf("redis://%s?timeout=%v", addr, patience) }

// hourly returns an op on a key with a limit of quota an hour.
func hourly(quota int64, rule, key string) store.Op {
	limit := window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(time.Hour)})
	return store.Op{Space: store.NewSpace("", rule, rule, 0), Limit: limit, Key: []byte(key), N: 1}
}

// traffic is callers that take the same ops again and again, until the test
// ends it.
type traffic struct {
	admitted, denied, outages atomic.Int64
	longest                   atomic.Int64 // wait of a caller, by clock
	clock                     func() time.Duration

	t       testing.TB
	cancel  context.CancelFunc
	callers sync.WaitGroup
}

// drive starts callers; each takes ops every 5 ms.
func drive(t testing.TB, s store.Store, callers int, ops ...store.Op) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d := &traffic{t: t, cancel: cancel, clock: redistest.Clock(t)}
	for range callers {
		d.callers.Go(func() {
			own := append([]store.Op(nil), ops...)
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					d.take(s, own)
				}
			}
		})
	}
	t.Cleanup(d.end)
	return d
}

func (d *traffic) take(s store.Store, ops []store.Op) {
	began := d.clock()
	err := store.Do(context.Background(), s, store.Take, ops)
	took := int64(d.clock() - began)
	for longest := d.longest.Load(); took > longest && !d.longest.CompareAndSwap(longest, took); {
		longest = d.longest.Load()
	}
	var out *store.OutageError
	switch {
	case errors.As(err, &out):
		d.outages.Add(1)
	case err != nil:
		d.t.Errorf("take: got %v, want an answer or an outage", err)
	case allowed(ops):
		d.admitted.Add(1)
	default:
		d.denied.Add(1)
	}
}

func allowed(ops []store.Op) bool {
	for i := range ops {
		if !ops[i].Result.Allowed {
			return false
		}
	}
	return true
}

// end ends the traffic and checks that no caller waited too long.
func (d *traffic) end() {
	d.cancel()
	d.callers.Wait()
	if longest := time.Duration(d.longest.Load()); longest > patience+slack {
		d.t.Errorf("longest wait: got %v, want %v and a little", longest, patience)
	}
}

// answers waits until calls are answered again: n more than by now.
func (d *traffic) answers(n int64) {
	d.t.Helper()
	before := d.admitted.Load() + d.denied.Load()
	redistest.Eventually(d.t, "calls are answered", func() bool {
		return d.admitted.Load()+d.denied.Load() >= before+n
	})
}

// fails waits until n more calls have met an outage.
func (d *traffic) fails(n int64) {
	d.t.Helper()
	before := d.outages.Load()
	redistest.Eventually(d.t, "calls meet an outage", func() bool { return d.outages.Load() >= before+n })
}

// kept checks that the store has kept at least the admitted hits, and few more.
func kept(t testing.TB, got, admitted int64) {
	t.Helper()
	if got < admitted || got > most(admitted) {
		t.Errorf("used: got %d, want the %d admitted and few more", got, admitted)
	}
}

// most returns how many hits can have been counted where so many were admitted.
// It includes hits whose answers were lost, by the test or on a busy machine.
func most(admitted int64) int64 { return admitted + admitted/5 + 100 }

// used returns how much of op is used. It waits until the store answers.
func used(t testing.TB, s store.Store, op store.Op) int64 {
	t.Helper()
	ops := []store.Op{op}
	ops[0].N = 0
	redistest.Eventually(t, "the store answers", func() bool {
		return store.Do(context.Background(), s, store.Check, ops) == nil
	})
	return ops[0].Result.Used
}

// killClients closes all connections but the test's own.
func killClients(n *redistest.Node) { n.Must("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }
