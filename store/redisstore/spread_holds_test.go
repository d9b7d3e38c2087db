package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
	_, s, keys := onCluster(t, 3)
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

// A settle that one of the nodes refuses has ended the hold on the other one: it says so, and that it was counted.
func TestSettleInOneOfSeveralSlots(t *testing.T) {
	t.Parallel()
	c, s, keys := onCluster(t, 3)
	ops := []store.Op{holdOf(hourly(10, "rule", keys[0]), 1), holdOf(hourly(10, "rule", keys[1]), 1)}
	for i := range ops {
		ops[i].Limit = window.MustCompile(window.Limit{Quota: 10, Window: window.Held(time.Hour)})
	}
	if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
		t.Fatal(err)
	}
	c.Masters[1].Must("CONFIG", "SET", "min-replicas-to-write", "1")
	err := store.Do(t.Context(), s, store.Settle, ops)
	out, ok := errors.AsType[*store.OutageError](err)
	if !ok || out.Reason != "read-only" || !slices.Equal(out.Ops, []int{1}) || out.Uncounted || !ops[0].Result.Held {
		t.Errorf("got %+v and %+v, want the first hold ended, and a node that is read-only", err, ops[0].Result)
	}
	c.Masters[1].Must("CONFIG", "SET", "min-replicas-to-write", "0")
	if err := store.Do(t.Context(), s, store.Settle, ops); err != nil || ops[0].Result.Held || !ops[1].Result.Held {
		t.Errorf("again: got %+v and error %v, want only the second hold ended", ops, err)
	}
}

// What several slots have counted without a confirmation stays if all admit, with its results, and is given back if one
// denies: a denial needs no confirmation.
func TestUnconfirmedInSeveralSlots(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	s := openURL(t, "redis+cluster://"+c.Addrs()+"?timeout=5s&wait_replicas=1")
	connected(t, s, 3)
	keys := keysOn(c.Masters...)
	place := hourly(1, "place", keys[0])
	place.Limit = window.MustCompile(window.Limit{Quota: 5, Window: window.Held(time.Hour)})
	plain, full := hourly(10, "plain", keys[1]), hourly(0, "full", keys[2])
	for i, test := range []struct {
		ops    []store.Op
		reason store.Reason
		want   int64
	}{
		{[]store.Op{holdOf(place, 1), holdOf(plain, 1), holdOf(full, 1)}, "", 0},
		{[]store.Op{holdOf(place, 2), holdOf(plain, 2)}, "unconfirmed", 1},
	} {
		err := store.Do(t.Context(), s, store.Take, test.ops)
		out, _ := errors.AsType[*store.OutageError](err)
		if test.reason == "" && err != nil || test.reason != "" && (out == nil || out.Reason != test.reason) {
			t.Errorf("%d: got error %v, want the reason %q", i, err, test.reason)
		}
		for n, op := range []store.Op{place, plain} {
			if got := used(t, s, op); got != test.want {
				t.Errorf("%d, op %d: got %d used, want %d", i, n, got, test.want)
			}
			if got := test.ops[n].Result; !got.Allowed || got.Used != test.want {
				t.Errorf("%d, op %d: got %+v, want it admitted", i, n, got)
			}
		}
	}
}

func reserveOf(op store.Op, id string, n int64) store.Op {
	op.N = n
	op.Hold = &store.Hold{Hold: window.Hold{End: window.Instant(time.Minute.Microseconds())}, Least: 1, Part: 1}
	copy(op.Hold.ID[:], id)
	return op
}

// A reserve of keys in several slots holds as many hits of each as the tightest has left, or none. Holds
// that another slot denies do not stay.
func TestReserveInSeveralSlots(t *testing.T) {
	t.Parallel()
	_, s, keys := onCluster(t, 3)
	wide, tight, full := hourly(1000, "wide", keys[0]), hourly(200, "tight", keys[1]), hourly(0, "full", keys[2])

	ops := []store.Op{reserveOf(wide, "a", 500), reserveOf(tight, "a", 500)}
	if err := store.Do(t.Context(), s, store.Reserve, ops); err != nil {
		t.Fatal(err)
	}
	for i, op := range ops {
		if h := op.Hold; op.N != 200 || !op.Result.Held || h.At == 0 || h.End-h.At != window.Instant(time.Minute.Microseconds()) || h.Least != 1 {
			t.Errorf("op %d: got %d hits, %+v and %+v, want 200 held for a minute", i, op.N, op.Result, *h)
		}
	}
	for i := range ops {
		ops[i].N = 20
	}
	if err := store.Do(t.Context(), s, store.Settle, ops); err != nil || !ops[0].Result.Held || !ops[1].Result.Held {
		t.Fatalf("settle: got %+v and error %v, want both found", ops, err)
	}

	denied := []store.Op{reserveOf(wide, "b", 5), reserveOf(full, "b", 5)}
	if err := store.Do(t.Context(), s, store.Reserve, denied); err != nil {
		t.Fatal(err)
	}
	if r := denied[0].Result; !r.Allowed || r.Held || r.Used != 20 || denied[0].Hold.At != 0 {
		t.Errorf("denied by another slot: got %+v and %+v, want nothing held", r, *denied[0].Hold)
	}
	if r := denied[1].Result; r.Allowed || r.RetryAfter != window.Never {
		t.Errorf("got %+v, want it denied for good", r)
	}

	// Callers who reserve at the same time never have more than the tightest quota, and what is denied
	// or not spent is given back.
	var spent atomic.Int64
	var callers sync.WaitGroup
	for c := range 16 {
		callers.Go(func() {
			for i := range 10 {
				id := fmt.Sprint(c, ".", i)
				ops := []store.Op{reserveOf(wide, id, 30), reserveOf(tight, id, 30)}
				ops[0].Hold.Part, ops[1].Hold.Part = 8, 8
				if err := store.Do(context.Background(), s, store.Reserve, ops); err != nil {
					t.Error(err)
					return
				}
				if !ops[0].Result.Held {
					continue
				}
				ops[0].N /= 2
				ops[1].N = ops[0].N
				spent.Add(ops[0].N)
				if err := store.Do(context.Background(), s, store.Settle, ops); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	got := spent.Load()
	if got == 0 || got > 180 {
		t.Errorf("got %d spent, want at most 180", got)
	}
	for _, op := range []store.Op{wide, tight} {
		if n := used(t, s, op); n != got+20 {
			t.Errorf("%s: got %d used, want %d", op.Space.ID(), n, got+20)
		}
	}
}
