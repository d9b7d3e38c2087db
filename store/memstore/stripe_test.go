package memstore_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// A call locks the stripe of each of its keys once, also where ops of several spaces have the
// same key, or several keys the same stripe.
func TestCallsLockEachStripeOnce(t *testing.T) {
	t.Parallel()
	plain := window.MustCompile(window.Limit{Quota: 100, Window: window.Sliding(time.Minute)})
	banning := window.MustCompile(window.Limit{Quota: 100, Window: window.Sliding(time.Minute), Ban: window.Ban{For: time.Minute}})
	for name, limit := range map[string]*window.Compiled{"few, in two passes": plain, "the general way": banning} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := memstore.New(memstore.WithShards(256))
			for _, keys := range [][]string{
				{"a"},
				{"a", "a", "a"},
				{"a", "b", "a", "c", "b"},
				{"g", "f", "e", "d", "c", "b", "a", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r"},
			} {
				var ops []store.Op
				want := memstore.LocksOf(s)
				locked := map[int]bool{}
				for i, key := range keys {
					ops = append(ops, hit(fmt.Sprint("space", i), limit, key))
					locked[memstore.NumberOf(s, key)] = true
				}
				for number := range locked {
					want[number]++
				}
				if err := s.Decide(t.Context(), store.Take, ops); err != nil {
					t.Fatal(err)
				}
				if got := memstore.LocksOf(s); !slices.Equal(got, want) {
					t.Errorf("%v: got %v locks in all, want %v: one for each stripe of the call", keys, sum(got), sum(want))
				}
			}
		})
	}
}

// sum returns the sum of numbers.
func sum(numbers []uint64) (all uint64) {
	for _, n := range numbers {
		all += n
	}
	return all
}

// A call that has locked one stripe and finds another one locked unlocks the first, and locks
// them in the order of their numbers. Until then, other calls are decided in the first one.
func TestCallsWaitInOrder(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.WithShards(2))
	limit := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)})
	keys := oneOfEach(s)
	release := memstore.Hold(s, 0)
	done := make(chan error)
	ops := []store.Op{hit("first", limit, keys[1]), hit("second", limit, keys[0])}
	go func() { done <- s.Decide(context.Background(), store.Take, ops) }()
	for memstore.LocksOfOne(s, 1) == 0 { // until the call has locked and unlocked it
		runtime.Gosched()
	}
	if r := take(t, s, hit("first", limit, keys[1])); r.Used != 1 {
		t.Errorf("got %+v from another call, want 1 used", r)
	}
	release()
	if err := <-done; err != nil || ops[0].Result.Used != 2 || ops[1].Result.Used != 1 {
		t.Errorf("got %d and %d used, %v, want 2 and 1", ops[0].Result.Used, ops[1].Result.Used, err)
	}
}

// oneOfEach returns a key of each stripe of s, which has two.
func oneOfEach(s *memstore.Store) (keys [2]string) {
	for i := range 100 {
		key := fmt.Sprint("k", i)
		keys[memstore.NumberOf(s, key)] = key
	}
	return keys
}

// A new key of a full space gets the space of an expired key whose stripe the same call has
// locked for a key of another space.
func TestReclaimsInStripesOfTheCall(t *testing.T) {
	t.Parallel()
	o := open(t, memstore.WithShards(2))
	s := o.Store.(*memstore.Store)
	limit := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Minute)})
	small, wide := store.NewSpace("", "small", "", 1), store.NewSpace("", "wide", "", 0)
	keys := oneOfEach(s)
	op := func(space *store.Space, key string) store.Op {
		return store.Op{Space: space, Limit: limit, Key: []byte(key), N: 1}
	}
	now := window.Instant(1e15)
	for at := range keys {
		o.Set(now)
		take(t, s, op(small, keys[at]))
		now = now.Add(2 * time.Hour)
		o.Set(now)
		ops := []store.Op{op(small, keys[1-at]), op(wide, keys[at])}
		if err := s.Decide(t.Context(), store.Take, ops); err != nil || !ops[0].Result.Allowed {
			t.Errorf("got %+v, %v, want the key in stripe %d admitted", ops[0].Result, err, 1-at)
		}
		now = now.Add(2 * time.Hour)
	}
}
