package memstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// heated is a store in which every key that is taken becomes hot at once.
type heated struct {
	*memstore.Store
	answers int // of hot keys that were seen
}

func (h *heated) Do(ctx context.Context, calls []store.Call) error {
	err := h.Store.Do(ctx, calls)
	for i := range calls {
		for n := range calls[i].Ops {
			if ks := memstore.KeyspaceOf(h.Store, calls[i].Ops[n].Space); ks != nil {
				memstore.PromoteAll(ks)
				h.answers += memstore.HotOf(ks)
			}
		}
	}
	return err
}

// Hot keys answer as the model does, whatever calls they meet. In the traffic of each
// seed windows of logs fill up exactly, so that there are hot answers, too.
func TestHotKeysAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		shards int
		seeds  []uint64
	}{
		{1, []uint64{0, 4, 8}},
		{2, []uint64{1, 5}},
		{32, []uint64{2, 10}},
		{256, []uint64{3, 7}},
	} {
		for _, seed := range test.seeds {
			var now atomic.Int64
			machine := memstore.WithMachine(func() (steady, wall window.Instant) {
				i := window.Instant(now.Load())
				return i, i
			})
			s := memstore.New(machine, memstore.WithShards(test.shards))
			t.Cleanup(func() { s.Close() })
			h := &heated{Store: s}
			opened := storetest.Opened{Store: h, Set: func(i window.Instant) { now.Store(int64(i)) }}
			storetest.Compare(t, opened, storetest.NewModel(), seed, 2500)
			if h.answers == 0 {
				t.Errorf("seed %d: got no hot answers, want some", seed)
			}
		}
	}
}

// A key that is taken often becomes hot without help, keeps its hits and is
// reclaimed when it has expired.
func TestKeyBecomesHot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.WithShards(1))
		for _, w := range []window.Window{
			window.Fixed(time.Hour), window.Calendar(window.Hour, nil), window.Bucket(time.Hour, 0),
			window.Sliding(time.Hour), window.Cells(time.Hour, 0),
		} {
			l := window.MustCompile(window.Limit{Quota: 100, Window: w})
			space := store.NewSpace("", w.ID(), "", 0)
			for i := range 300 {
				r, err := one(t.Context(), s, store.Take, space, l, "k", "", 1)
				want := int64(min(i+1, 100))
				if err != nil || r.Used != want || r.Allowed != (i < 100) {
					t.Fatalf("%v, take %d: got %+v, %v, want %d used", w, i, r, err, want)
				}
			}
			ks := memstore.KeyspaceOf(s, space)
			if answers := memstore.HotOf(ks); answers != 1 {
				t.Errorf("%v: got %d hot answers, want 1", w, answers)
			}
			op := store.Op{Space: space, Limit: l, Key: []byte("k")}
			if r, err := s.Read(t.Context(), &op); err != nil || r.Used != 100 {
				t.Errorf("%v: got %d used, %v, want 100", w, r.Used, err)
			}
			if r, err := one(t.Context(), s, store.Take, space, l, "k", "", 1); err != nil || r.Allowed { // hot again
				t.Errorf("%v: got %+v, %v, want denied", w, r, err)
			}
			time.Sleep(3 * time.Hour)
			if n := s.Sweep(1 << 20); n != 1 || memstore.KeysOf(s, space) != 0 {
				t.Errorf("%v: got %d keys reclaimed and %d left, want 1 and 0", w, n, memstore.KeysOf(s, space))
			}
		}
	})
}

// A full space reclaims a hot key that has expired.
func TestHotKeyMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.WithShards(1))
		l := window.MustCompile(window.Limit{Quota: 100, Window: window.Fixed(time.Second)})
		space := store.NewSpace("", "full", "", 1)
		for range 200 {
			if _, err := one(t.Context(), s, store.Take, space, l, "a", "", 1); err != nil {
				t.Fatal(err)
			}
		}
		if answers := memstore.HotOf(memstore.KeyspaceOf(s, space)); answers != 1 {
			t.Fatalf("got %d hot answers, want 1", answers)
		}
		if _, err := one(t.Context(), s, store.Take, space, l, "b", "", 1); err == nil {
			t.Error("a second key was admitted, want none")
		}
		time.Sleep(2 * time.Second)
		if _, err := one(t.Context(), s, store.Take, space, l, "b", "", 1); err != nil {
			t.Errorf("got %v, want it admitted once the first key has expired", err)
		}
	})
}

// Takes of a hot key and all other calls at the same time neither lose hits nor
// admit one too many.
func TestHotKeyUnderLoad(t *testing.T) {
	t.Parallel()
	const quota, goroutines, rounds = 20_000, 8, 6000
	for _, w := range []window.Window{window.Fixed(time.Hour), window.Calendar(window.Year, nil), window.Bucket(24*365*time.Hour, 0), window.Cells(24*time.Hour, 1)} {
		s := memstore.New(memstore.WithShards(1))
		l := window.MustCompile(window.Limit{Quota: quota, Window: w})
		space := store.NewSpace("", w.ID(), "", 0)
		var counted, admitted, denied atomic.Int64
		var all sync.WaitGroup
		for g := range goroutines {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			all.Go(func() {
				for i := range rounds {
					ops := []store.Op{{Space: space, Limit: l, Key: []byte("k"), N: 1}}
					verb := store.Take
					switch rnd.IntN(200) {
					case 0:
						verb = store.Refund
					case 1:
						if w.Kind != window.KindBucket { // it shows at most its burst
							verb = store.Record
						}
					case 2:
						verb = store.Check
					case 3: // another key in the same call
						ops = append(ops, store.Op{Space: space, Limit: l, Key: fmt.Appendf(nil, "other %d %d", g, i), N: 1})
					case 4:
						if _, err := s.Read(t.Context(), &ops[0]); err != nil {
							t.Error(err)
						}
						s.Sweep(64)
						continue
					case 5, 6, 7, 8, 9, 10, 11, 12: // keys come and go, so that slots move
						ops[0].Key = fmt.Appendf(nil, "key %d %d", g, i%512)
						if rnd.IntN(2) == 0 {
							if err := s.Forget(t.Context(), &ops[0]); err != nil {
								t.Error(err)
							}
							continue
						}
						if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
							t.Error(err)
						}
						continue
					}
					if err := store.Do(t.Context(), s, verb, ops); err != nil {
						t.Error(err)
						continue
					}
					r := &ops[0].Result
					switch {
					case verb == store.Check:
					case verb == store.Refund:
						counted.Add(r.Used - r.Before)
					case r.Allowed:
						counted.Add(1)
						admitted.Add(1)
					default:
						denied.Add(1)
					}
					if verb == store.Take && r.Allowed && r.Used > quota {
						t.Errorf("%v: admitted with %d used, want at most %d", w, r.Used, quota)
					}
				}
			})
		}
		all.Wait()
		r, err := s.Read(t.Context(), &store.Op{Space: space, Limit: l, Key: []byte("k")})
		if err != nil || r.Used != counted.Load() {
			t.Errorf("%v: got %d used, %v, want the %d that were counted", w, r.Used, err, counted.Load())
		}
		if admitted.Load() < quota || denied.Load() == 0 {
			t.Errorf("%v: got %d admitted and %d denied, want both sides of the quota", w, admitted.Load(), denied.Load())
		}
	}
}

// Every history of concurrent calls on hot keys is one that the calls could have
// had one after the other, in an order that respects which call ended before
// another one began (Herlihy and Wing, 1990).
func TestHotKeyIsLinearizable(t *testing.T) {
	t.Parallel()
	const histories, goroutines, each, quota = 400, 4, 7, 12
	for _, w := range []window.Window{window.Fixed(time.Hour), window.Bucket(time.Hour, 0), window.Sliding(time.Hour)} {
		s := memstore.New(memstore.WithShards(1))
		l := window.MustCompile(window.Limit{Quota: quota, Window: w})
		space := store.NewSpace("", w.ID(), "", 0)
		hot := 0
		for n := range histories {
			key := fmt.Sprint("k", n%3)
			if err := s.Forget(t.Context(), &store.Op{Space: space, Limit: l, Key: []byte(key)}); err != nil {
				t.Fatal(err)
			}
			var clock atomic.Int64
			var all sync.WaitGroup
			list := make([][]event, goroutines)
			for g := range goroutines {
				rnd := rand.New(rand.NewPCG(uint64(n), uint64(g)))
				all.Go(func() {
					for range each {
						e := event{verb: store.Take, hits: 1}
						switch rnd.IntN(8) {
						case 0:
							e.verb, e.hits = store.Refund, int64(1+rnd.IntN(4))
						case 1:
							e.verb = store.Check
						case 2:
							e.hits = int64(1 + rnd.IntN(3))
						}
						e.began = clock.Add(1)
						r, err := one(t.Context(), s, e.verb, space, l, key, "", e.hits)
						e.ended = clock.Add(1)
						if err != nil {
							t.Error(err)
						}
						e.allowed, e.before, e.used = r.Allowed, r.Before, r.Used
						list[g] = append(list[g], e)
						if rnd.IntN(3) == 0 {
							runtime.Gosched()
						}
					}
				})
			}
			all.Wait()
			ks := memstore.KeyspaceOf(s, space)
			memstore.PromoteAll(ks)
			hot += memstore.HotOf(ks)
			var history []event
			for _, events := range list {
				history = append(history, events...)
			}
			if !linearizable(history, 0, 0, quota, map[[2]uint64]bool{}) {
				t.Fatalf("%v, history %d: no order explains %+v", w, n, history)
			}
		}
		if hot < histories/10 {
			t.Errorf("%v: got %d hot keys in %d histories, want more", w, hot, histories)
		}
	}
}

// event is one call of a history.
type event struct {
	verb               store.Verb
	hits, before, used int64
	began, ended       int64
	allowed            bool
}

// linearizable reports whether the events that are not in done can follow, when
// used hits are in the window.
func linearizable(history []event, done uint64, used, quota int64, failed map[[2]uint64]bool) bool {
	if done == 1<<len(history)-1 {
		return true
	}
	at := [2]uint64{done, uint64(used)}
	if failed[at] {
		return false
	}
	first := int64(1 << 62) // end of the first open event that ended
	for i, e := range history {
		if done&(1<<i) == 0 {
			first = min(first, e.ended)
		}
	}
	for i, e := range history {
		if done&(1<<i) != 0 || e.began > first || e.before != used {
			continue
		}
		next, allowed := used, true
		switch e.verb {
		case store.Refund:
			next = max(0, used-e.hits)
		case store.Take, store.Check:
			if allowed = used+e.hits <= quota; allowed && e.verb == store.Take {
				next += e.hits
			}
		}
		if allowed == e.allowed && next == e.used && linearizable(history, done|1<<i, next, quota, failed) {
			return true
		}
	}
	failed[at] = true
	return false
}

// A take that is descheduled after it has read the clock is not denied for hits
// that came later.
func TestHotKeyIsNotDeniedLate(t *testing.T) {
	t.Parallel()
	var (
		now   atomic.Int64
		late  func()
		start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	)
	now.Store(start)
	s := memstore.New(memstore.WithShards(1), memstore.WithMachine(func() (steady, wall window.Instant) {
		i := window.Instant(now.Load())
		if f := late; f != nil {
			late = nil
			f()
		}
		return i, i
	}))
	// A hit drains in 10 ms, and the bucket holds one.
	l := window.MustCompile(window.Limit{Quota: 100, Window: window.Bucket(time.Second, 1)})
	space := store.NewSpace("", "late", "", 0)
	take := func() bool {
		r, err := one(t.Context(), s, store.Take, space, l, "k", "", 1)
		if err != nil {
			t.Fatal(err)
		}
		return r.Allowed
	}
	for range 200 {
		take()
	}
	if answers := memstore.HotOf(memstore.KeyspaceOf(s, space)); answers != 1 {
		t.Fatalf("got %d hot answers, want 1", answers)
	}
	now.Add(10_000)
	late = func() { // the first take has read the clock and stands still
		now.Add(1)
		if !take() {
			t.Error("the take in between: got denied, want admitted")
		}
		now.Add(1)
		if take() { // hot again
			t.Error("the second take in between: got admitted, want denied")
		}
		now.Add(10_000)
	}
	if !take() {
		t.Error("the late take: got denied, want admitted: the bucket has drained meanwhile")
	}
	take() // hot again
	late = func() {
		op := store.Op{Space: space, Limit: l, Key: []byte("k"), N: 1}
		if err := store.Do(t.Context(), s, store.Refund, []store.Op{op}); err != nil {
			t.Error(err)
		}
	}
	if !take() {
		t.Error("the take after the refund: got denied, want admitted: the bucket was empty when the clock was read")
	}
}
