package pgstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/store/remote"
)

// Calls do not wait for a server that hangs: after five time-outs the circuit breaker opens. The
// store closes it by itself when the server answers, and nothing was counted meanwhile.
func TestCircuitBreaker(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	changes := make(chan pgstore.Change, 10)
	c, err := pgstore.Parse(n.URL("timeout=100ms"))
	if err != nil {
		t.Fatal(err)
	}
	c.Changed = func(c pgstore.Change) { changes <- c }
	s, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pgtest.Eventually(t, "a call is counted", func() bool {
		return store.Do(remote.WithTimeout(t.Context(), time.Minute), s, store.Take, []store.Op{op("ann")}) == nil
	})
	n.Stop()
	pgtest.Eventually(t, "the circuit breaker is open", func() bool {
		_, err := take(t, s, "ann")
		why, uncounted := reason(err)
		if !uncounted {
			t.Errorf("got %v, want an outage of a call that is not counted", err)
		}
		return why == remote.CircuitOpen
	})
	if c := <-changes; c.Err == nil {
		t.Errorf("got change %+v, want the start of an outage", c)
	}
	for range 1000 {
		_, err := take(t, s, "ann")
		if why, uncounted := reason(err); why == remote.Late || !uncounted {
			t.Fatalf("got %v, want an outage without a time-out", err)
		}
	}
	n.Continue()
	if c := <-changes; c.Err != nil || c.Missed < 1000 {
		t.Errorf("got change %+v, want the end of the outage", c)
	}
	pgtest.Eventually(t, "calls are counted again", func() bool { // a busy machine is no second interruption
		return store.Do(remote.WithTimeout(t.Context(), time.Minute), s, store.Take, []store.Op{op("bob")}) == nil
	})
	o := op("ann")
	if r, err := s.Read(remote.WithTimeout(t.Context(), time.Minute), &o); err != nil || r.Used != 1 {
		t.Errorf("got %d hits, %v, want 1", r.Used, err)
	}
	pgtest.Eventually(t, "no calls are in flight", func() bool { return s.Nodes()[0].InFlight == 0 })
	if nodes := s.Nodes(); nodes[0].Unavailable || nodes[0].Interruptions != 1 {
		t.Errorf("got %+v, want one interruption", nodes)
	}
}

// lock runs a statement that locks something, and returns a function that unlocks it.
func lock(t *testing.T, n *pgtest.Node, statement string) (unlock func()) {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), n.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	do := func(sql string) {
		t.Helper()
		if err := c.Exec(t.Context(), sql).Close(); err != nil {
			t.Fatal(err)
		}
	}
	do("BEGIN; " + statement)
	return func() {
		t.Helper()
		do("COMMIT")
	}
}

// A row that another program keeps locked holds up the calls on it, and no others for long.
func TestLockedRows(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := openURL(t, n.URL("timeout=100ms"))
	pgtest.Eventually(t, "a call is counted", func() bool { _, err := take(t, s, "ann"); return err == nil })
	unlock := lock(t, n, "SELECT 1 FROM weir_counters FOR UPDATE")
	pgtest.Eventually(t, "calls on the row meet outages", func() bool {
		_, err := take(t, s, "ann")
		_, uncounted := reason(err)
		return uncounted
	})
	pgtest.Eventually(t, "calls on other rows are counted", func() bool { _, err := take(t, s, "bob"); return err == nil })
	unlock()
	pgtest.Eventually(t, "calls on the row are counted", func() bool {
		ops := []store.Op{op("ann")}
		return store.Do(t.Context(), s, store.Take, ops) == nil
	})
}

// Batches that have more calls than may be in flight wait for each other, and refuse no one else's.
func TestManyBatches(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	for _, inFlight := range []int{1, 8, 100} {
		s, err := pgstore.Open(t.Context(), n.URL("timeout=1m", fmt.Sprint("in_flight=", inFlight)))
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				calls := make([]store.Call, 30)
				for k := range calls {
					o := op(fmt.Sprint("key", k))
					o.Space = store.NewSpace(fmt.Sprint("tenant", i/6), "posts", "posts", 0)
					calls[k] = store.Call{Verb: store.Record, Ops: []store.Op{o}}
				}
				if i == 7 {
					calls = calls[:1]
				}
				if err := s.Do(t.Context(), calls); err != nil {
					t.Error(err)
				}
				for _, c := range calls {
					if c.Err != nil {
						t.Errorf("%d in flight: got %v", inFlight, c.Err)
						return
					}
				}
			})
		}
		all.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
