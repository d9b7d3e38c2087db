package pgstore_test

import (
	"testing"
	"time"

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
	c, err := pgstore.Parse(n.URL("timeout=2s"))
	if err != nil {
		t.Fatal(err)
	}
	c.Changed = func(c pgstore.Change) { changes <- c }
	s, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pgtest.Eventually(t, "a call is counted", func() bool { _, err := take(t, s, "ann"); return err == nil })
	counted := used(t, s, "ann")
	n.Stop()
	for i := range 5 {
		_, err := take(t, s, "ann")
		if why, uncounted := reason(err); why != remote.Late || !uncounted {
			if why == remote.CircuitOpen || why == remote.Closed || why == remote.Refused { // the probes were faster
				break
			}
			t.Errorf("call %d: got %v, want late and not counted", i, err)
		}
	}
	if c := <-changes; c.Err == nil {
		t.Errorf("got change %+v, want the start of an outage", c)
	}
	began := time.Now()
	for range 1000 {
		_, err := take(t, s, "ann")
		if _, uncounted := reason(err); !uncounted {
			t.Fatalf("got %v, want an outage", err)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("1000 calls took %v, want no time-out", took)
	}
	n.Continue()
	if c := <-changes; c.Err != nil || c.Missed < 1000 {
		t.Errorf("got change %+v, want the end of the outage", c)
	}
	pgtest.Eventually(t, "calls are counted again", func() bool { _, err := take(t, s, "bob"); return err == nil })
	if got := used(t, s, "ann"); got != counted {
		t.Errorf("got %d hits, want %d", got, counted)
	}
	pgtest.Eventually(t, "no calls are in flight", func() bool { return s.Nodes()[0].InFlight == 0 })
	if nodes := s.Nodes(); nodes[0].Unavailable || nodes[0].Interruptions != 1 {
		t.Errorf("got %+v, want one interruption", nodes)
	}
}

// A row that another program keeps locked holds up the calls on it, and no others for long.
func TestLockedRows(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s, err := pgstore.Open(t.Context(), n.URL("timeout=100ms"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pgtest.Eventually(t, "a call is counted", func() bool { _, err := take(t, s, "ann"); return err == nil })
	locked := make(chan string)
	go func() {
		out, _ := n.Do("BEGIN; SELECT 1 FROM weir_counters FOR UPDATE; SELECT pg_sleep(5); COMMIT")
		locked <- out
	}()
	pgtest.Eventually(t, "calls on the row meet outages", func() bool {
		_, err := take(t, s, "ann")
		_, uncounted := reason(err)
		return uncounted
	})
	pgtest.Eventually(t, "calls on other rows are counted", func() bool { _, err := take(t, s, "bob"); return err == nil })
	<-locked
	pgtest.Eventually(t, "calls on the row are counted", func() bool {
		ops := []store.Op{op("ann")}
		return store.Do(t.Context(), s, store.Take, ops) == nil
	})
}
