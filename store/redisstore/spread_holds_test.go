package redisstore_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Holds of a take that another slot denies do not stay, and hits are given back at
// their own instant: hits that came later keep theirs. A cancel that finds a hold in
// one slot gives back what the take counted in the others.
func TestHoldsInSeveralSlots(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	s := openURL(t, "redis+cluster://"+c.Addrs()+"?timeout=20s")
	connected(t, s, 3)
	keys := keysOn(c.Masters...)
	flight := hourly(1, "flight", keys[0])
	flight.Limit = window.MustCompile(window.Limit{Quota: 1, Window: window.Held(time.Hour)})
	plain, full := hourly(10, "plain", keys[1]), hourly(0, "full", keys[2])

	denied := []store.Op{holdOf(flight, 1), holdOf(plain, 1), holdOf(full, 1)}
	if err := store.Do(t.Context(), s, store.Take, denied); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false} {
		if r := denied[i].Result; r.Allowed != want || r.Held || r.Used != 0 {
			t.Errorf("denied, op %d: got %+v, want nothing counted or held", i, r)
		}
	}
	for _, op := range []store.Op{flight, plain} {
		if got := used(t, s, op); got != 0 {
			t.Errorf("after a denied take: got %d used, want 0", got)
		}
	}

	take := []store.Op{holdOf(flight, 2), holdOf(plain, 2)}
	if err := store.Do(t.Context(), s, store.Take, take); err != nil || !take[0].Result.Held {
		t.Fatalf("got %+v and error %v, want it held", take[0].Result, err)
	}
	if err := store.Do(t.Context(), s, store.Take, []store.Op{plain}); err != nil {
		t.Fatal(err)
	}
	for i := range take {
		take[i].Hold.At = take[i].Hold.Decided
	}
	for again := range 2 {
		if err := store.Do(t.Context(), s, store.Cancel, take); err != nil {
			t.Fatal(err)
		}
		if got := take[0].Result.Held; got != (again == 0) {
			t.Errorf("cancel %d: got held %v, want it once", again+1, got)
		}
		if got := used(t, s, plain); got != 1 {
			t.Errorf("cancel %d: got %d used, want 1", again+1, got)
		}
		if got := used(t, s, flight); got != 0 {
			t.Errorf("cancel %d: got %d in flight, want 0", again+1, got)
		}
	}
}
