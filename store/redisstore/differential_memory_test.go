package redisstore_test

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// TestMemoryAgreesWithWindow plays the traffic of limits that hold and ban, which
// change under it, on the store in memory and on the model. Time only goes forward.
// No take is admitted over the quota.
func TestMemoryAgreesWithWindow(t *testing.T) {
	t.Parallel()
	for _, s := range subjects(t) {
		if !s.holds() {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(30) {
				playInMemory(t, &s, seed)
			}
		})
	}
}

func playInMemory(t *testing.T, s *subject, seed uint64) {
	var now atomic.Int64
	got := memstore.New(memstore.WithClock(func() window.Instant { return window.Instant(now.Load()) }), memstore.WithShards(1))
	defer got.Close()
	want := storetest.NewModel()
	p := &player{Rand: rand.New(rand.NewPCG(seed, 77)), subject: s, space: store.NewSpace("", s.name, "rule", 0)}
	p.now = window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	for i := range 400 {
		p.pass()
		p.now = max(p.now, window.Instant(now.Load()))
		now.Store(int64(p.now))
		want.Set(p.now)
		verb, ops := p.call()
		expected := slices.Clone(ops)
		for n := range expected {
			if h := expected[n].Hold; h != nil {
				own := *h
				expected[n].Hold = &own
			}
		}
		for s, ops := range map[store.Store][]store.Op{got: ops, want.Store: expected} {
			if err := store.Do(t.Context(), s, verb, ops); err != nil {
				t.Fatalf("seed %d, call %d: got error %v", seed, i, err)
			}
		}
		for n := range ops {
			op, r := &ops[n], ops[n].Result
			if r != expected[n].Result {
				t.Fatalf("seed %d, call %d, %v at %d, op %d of %d: %+v, %d hits on key %s, role %d, count denied %v, hold %+v:\ngot  %+v\nwant %+v",
					seed, i, verb, p.now, n, len(ops), *op.Limit.Limit, op.N, op.Key, op.Role, op.CountDenied, op.Hold, r, expected[n].Result)
			}
			if verb == store.Take && op.Role == store.Enforce && r.Held && r.Quota != window.Unlimited && r.Used > r.Quota {
				t.Fatalf("seed %d, call %d: admitted over the quota: %+v", seed, i, r)
			}
			p.last = r.RetryAfter
		}
		p.note(verb, ops)
	}
}
