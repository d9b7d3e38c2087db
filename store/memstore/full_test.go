package memstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

func TestFull(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.Set(1e15)
	s := o.Store.(*memstore.Store)
	limit := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Minute)})
	small := func(key string) store.Op {
		op := hit("small", limit, key)
		op.Space = store.NewSpace("", "small", "", 3)
		return op
	}
	for i := range 3 {
		take(t, s, small(fmt.Sprint("k", i)))
	}
	wide := hit("wide", limit, "k")
	for _, verb := range []store.Verb{store.Check, store.Take, store.Record, store.Reserve} {
		ops := []store.Op{small("k0"), small("new"), wide, small("newer")}
		err := store.Do(t.Context(), s, verb, ops)
		var full *store.OutageError
		if !errors.As(err, &full) || !errors.Is(err, store.ErrFull) || !slices.Equal(full.Ops, []int{1, 3}) || !strings.HasPrefix(err.Error(), "max_keys reached") {
			t.Fatalf("%v of new keys: got error %v, want ops 1 and 3 refused as full", verb, err)
		}
	}
	ops := []store.Op{small("k0"), wide}
	if err := store.Do(t.Context(), s, store.Check, ops); err != nil || ops[0].Result.Used != 1 || ops[1].Result.Used != 0 {
		t.Errorf("check of known keys: got error %v, %d and %d used, want nothing counted by refused calls", err, ops[0].Result.Used, ops[1].Result.Used)
	}
	ops = []store.Op{small("new")}
	if err := store.Do(t.Context(), s, store.Check, ops); !errors.Is(err, store.ErrFull) {
		t.Errorf("check of one new key: got error %v, want that of a take, %v", err, store.ErrFull)
	}
	ops = []store.Op{small("k0"), small("new"), wide}
	if err := store.Do(t.Context(), s, store.Refund, ops); err != nil {
		t.Errorf("refund: got error %v, want none", err)
	}
	if r := take(t, s, small("k1")); r.Used != 2 {
		t.Errorf("known key: got %+v, want 2 used", r)
	}
	if memstore.FullOf(s) != 9 || keysOf(s, "small") != 2 { // k0 was refunded
		t.Errorf("got %d refused and %d keys, want 9 and 2", memstore.FullOf(s), keysOf(s, "small"))
	}
	take(t, s, small("k0"))

	o.Set(1e15 + 2*3600e6)
	for i := range 3 {
		if r := take(t, s, small(fmt.Sprint("later", i))); !r.Allowed {
			t.Errorf("after the others expired: got %+v, want allowed", r)
		}
	}
}

// Concurrent calls fill a space with exactly MaxKeys keys.
func TestFullUnderLoad(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.Set(1e15)
	s := o.Store.(*memstore.Store)
	limit := window.MustCompile(window.Limit{Quota: 1, Window: window.Fixed(time.Minute)})
	space := store.NewSpace("", "s", "", 1000)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 100 {
				ops := []store.Op{{Space: space, Limit: limit, Key: fmt.Append(nil, i, "/", j), N: 1}}
				if store.Do(t.Context(), s, store.Take, ops) == nil {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != 1000 || keysOf(s, "s") != 1000 || memstore.FullOf(s) != 600 {
		t.Errorf("got %d admitted, %d keys, %d refused, want 1000, 1000, 600", admitted.Load(), keysOf(s, "s"), memstore.FullOf(s))
	}
}

// The space of an expired key is used once, by its own op or by another one of
// the same call.
func TestFullOfExpired(t *testing.T) {
	t.Parallel()
	o := open(t, memstore.WithShards(1))
	s := o.Store.(*memstore.Store)
	limit := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)})
	space := store.NewSpace("", "s", "", 2)
	ask := func(keys ...string) error {
		ops := make([]store.Op, len(keys))
		for i, key := range keys {
			ops[i] = store.Op{Space: space, Limit: limit, Key: []byte(key), N: 1}
		}
		return store.Do(t.Context(), s, store.Take, ops)
	}
	for i, key := range []string{"expired", "live"} {
		o.Set(1e15 + window.Instant(i)*3000e6)
		if err := ask(key); err != nil {
			t.Fatal(err)
		}
	}
	o.Set(1e15 + 2*3600e6 + 1)
	if err := ask("expired", "new"); !errors.Is(err, store.ErrFull) || keysOf(s, "s") > 2 {
		t.Errorf("got error %v and %d keys, want %v and 2 at most", err, keysOf(s, "s"), store.ErrFull)
	}
	if err := ask("expired", "live"); err != nil || keysOf(s, "s") != 2 {
		t.Errorf("got error %v and %d keys, want none and 2", err, keysOf(s, "s"))
	}
}
