package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// flood takes n single hits on each of the keys from first to last-1.
func flood(t testing.TB, s store.Store, op store.Op, first, last int, n int) {
	t.Helper()
	ops := []store.Op{op}
	for i := first; i < last; i++ {
		ops[0].Key = fmt.Appendf(ops[0].Key[:0], "key %d", i)
		for range n {
			if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// bytes returns how much memory the keys of s take.
func bytes(s *memstore.Store) (n int64) {
	for _, st := range s.Stats() {
		n += st.Bytes
	}
	return n
}

func TestBytesPerKey(t *testing.T) {
	t.Parallel()
	const keys = 5_000
	for _, test := range []struct {
		limit window.Limit
		hits  int
		most  int64 // bytes a key
	}{
		{window.Limit{Quota: 12, Window: window.Bucket(time.Minute, 0)}, 3, 48},
		{window.Limit{Quota: 5, Window: window.Calendar(window.Day, nil)}, 3, 48},
		{window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}, 1, 48},
		{window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}, 3, 48},
		{window.Limit{Quota: 1000, Window: window.Sliding(time.Hour)}, 3, 92},
		{window.Limit{Quota: 100, Window: window.Sliding(time.Hour)}, 100, 1400},
	} {
		s := memstore.New(memstore.WithClock(func() window.Instant { return 1e15 }))
		flood(t, s, hit("s", window.MustCompile(test.limit), ""), 0, keys, test.hits)
		if got := bytes(s) / keys; got > test.most {
			t.Errorf("quota %d in %v, %d hits: got %d bytes a key, want at most %d",
				test.limit.Quota, test.limit.Window, test.hits, got, test.most)
		} else {
			t.Logf("quota %d in %v, %d hits: %d bytes a key", test.limit.Quota, test.limit.Window, test.hits, got)
		}
	}
}

func TestMemoryGoesBack(t *testing.T) {
	t.Parallel()
	o := open(t)
	s := o.Store.(*memstore.Store)
	o.Set(1e15)
	const keys = 100_000
	op := hit("s", window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}), "")
	flood(t, s, op, 0, keys, 1)
	high := bytes(s)

	// One key in a hundred is used again, and outlives the others.
	o.Set(1e15 + 1800e6)
	for i := 0; i < keys; i += 100 {
		flood(t, s, op, i, i+1, 1)
	}
	o.Set(1e15 + 2*3600e6)
	if got := s.Sweep(100); got > 100 {
		t.Errorf("got %d keys reclaimed by looking at 100 slots", got)
	}
	s.Sweep(1 << 30)
	if got := keysOf(s, "s"); got != keys/100 {
		t.Errorf("got %d keys, want %d", got, keys/100)
	}
	s.Sweep(1 << 30) // what became thin is now next to something thin
	s.Sweep(1 << 30)
	if got := bytes(s); got > high/50 {
		t.Errorf("got %d bytes for 1%% of the keys, want at most 2%% of %d", got, high)
	}
	o.Set(1e15 + 4*3600e6)
	s.Sweep(1 << 30)
	if got := bytes(s); got != 0 || keysOf(s, "s") != 0 {
		t.Errorf("got %d bytes for %d keys, want none", got, keysOf(s, "s"))
	}
}

// A sweep ends although keyspaces, or some of their shards, are empty.
func TestSweepEnds(t *testing.T) {
	t.Parallel()
	op := func(space string) store.Op {
		return hit(space, window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}), "")
	}
	for name, fill := range map[string]func(t *testing.T, s *memstore.Store){
		"no table": func(*testing.T, *memstore.Store) {},
		"a key in one shard of many": func(t *testing.T, s *memstore.Store) {
			flood(t, s, op("s"), 0, 1, 1)
		},
		"a table beside one that was emptied": func(t *testing.T, s *memstore.Store) {
			flood(t, s, op("full"), 0, 1000, 1)
			gone := op("gone")
			flood(t, s, gone, 0, 1000, 1)
			for i := range 1000 {
				gone.Key = fmt.Appendf(nil, "key %d", i)
				if err := s.Forget(t.Context(), &gone); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a table that was never counted in": func(t *testing.T, s *memstore.Store) {
			ops := []store.Op{op("s")}
			ops[0].Key = []byte("key")
			if err := store.Do(t.Context(), s, store.Check, ops); err != nil {
				t.Fatal(err)
			}
		},
	} {
		var now atomic.Int64
		now.Store(1e15)
		s := memstore.New(memstore.WithShards(64), memstore.WithClock(func() window.Instant { return window.Instant(now.Load()) }))
		fill(t, s)
		for _, later := range []int64{0, 2 * 3600e6, 0} { // while keys live, as they expire, when none is left
			now.Add(later)
			ended := make(chan struct{})
			go func() { s.Sweep(1 << 30); close(ended) }()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: got no end of a sweep", name)
			}
		}
		for _, st := range s.Stats() {
			if st.Keys != 0 {
				t.Errorf("%s: got %d keys after they expired, want none", name, st.Keys)
			}
		}
	}
}

// Shards that became empty do not count as slots that a sweep looks at.
func TestSweepPassesEmptyShards(t *testing.T) {
	t.Parallel()
	o := open(t, memstore.WithShards(64))
	s := o.Store.(*memstore.Store)
	op := hit("s", window.MustCompile(window.Limit{Quota: 5, Window: window.Fixed(time.Minute)}), "")
	now := window.Instant(1e15)
	for i := range 1000 { // some expire while others come
		now = now.Add(time.Minute)
		o.Set(now)
		flood(t, s, op, i, i+1, 1)
		s.Sweep(100)
	}
	o.Set(now.Add(2 * time.Hour))
	if s.Sweep(10_000); keysOf(s, "s") != 0 {
		t.Errorf("got %d keys left after a look at ten thousand slots, want none", keysOf(s, "s"))
	}
}

// Calls reclaim expired keys: those of their own space, and those of spaces that
// are not used any more.
func TestReclaimsAsItGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		passing := hit("passing", window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Minute)}), "")
		removed := hit("removed", window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Minute)}), "")
		flood(t, s, removed, 0, 5000, 1)
		const aMinute = 4_000 // new keys
		for i := range 10 * aMinute {
			flood(t, s, passing, i, i+1, 1)
			if i%100 == 0 {
				time.Sleep(time.Minute / aMinute * 100)
			}
			if got := keysOf(s, "passing"); got > 2*aMinute {
				t.Fatalf("got %d keys after %d of %d a minute, want at most twice as many", got, i, aMinute)
			}
		}
		if got := keysOf(s, "removed"); got > 0 {
			t.Errorf("got %d keys of a rule that was removed, want them reclaimed by the others' calls", got)
		}
		if got := s.Stats(); len(got) != 1 {
			t.Errorf("got %d tables, want the unused one dropped", len(got))
		}
	})
}

// Close frees the keys, although calls that have begun may hold their keyspace.
func TestCloseFreesKeys(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	op := hit("s", window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}), "")
	flood(t, s, op, 0, 100, 1)
	keyspace := memstore.KeyspaceOf(s, op.Space)
	if memstore.ShardsOf(keyspace) == 0 {
		t.Fatal("got no shards, want some to free")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := memstore.ShardsOf(keyspace); got != 0 {
		t.Errorf("got %d shards after the store was closed, want none", got)
	}
}

// When a rule set is replaced and its counters stay, the old set is not kept.
func TestOldSpacesAreNotKept(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	limit := window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}
	use := func() (weak.Pointer[store.Space], weak.Pointer[window.Compiled]) {
		l := window.MustCompile(limit)
		op := hit("s", l, "k")
		take(t, s, op)
		return weak.Make(op.Space), weak.Make(l)
	}
	space, old := use()
	for range 100 {
		use()
	}
	runtime.GC()
	if space.Value() != nil || old.Value() != nil {
		t.Error("got a space and a limit kept that were replaced")
	}
}

// States hold no pointers. Not parallel: it measures the heap.
func TestNoPointers(t *testing.T) {
	scannable := func() uint64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/scan/heap:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	s := memstore.New()
	before := scannable()
	flood(t, s, hit("s", window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}), ""), 0, 200_000, 1) // the shards have some, whatever the number of keys
	grown := int64(scannable() - before)
	if most := bytes(s) / 50; grown > most {
		t.Errorf("got %d more bytes to scan, want at most %d of %d", grown, most, bytes(s))
	}
}

// Not parallel: it counts allocations.
func TestNoAllocations(t *testing.T) {
	s := memstore.New()
	for name, l := range map[string]window.Limit{
		"sliding":  {Quota: 1 << 40, Window: window.Sliding(time.Hour)},
		"cells":    {Quota: 1 << 40, Window: window.Cells(time.Hour, 0)},
		"fixed":    {Quota: 1 << 40, Window: window.Fixed(time.Hour)},
		"calendar": {Quota: 1 << 40, Window: window.Calendar(window.Day, nil)},
		"bucket":   {Quota: 3600 << 20, Window: window.Bucket(time.Hour, 0)},
		"distinct": {Quota: 5, Measure: window.Distinct, Window: window.Sliding(time.Hour)},
		"denied":   {Quota: 3, Window: window.Sliding(time.Hour)},
	} {
		limit := window.MustCompile(l)
		for _, n := range []int{1, 3, 8} {
			var ops []store.Op
			for i := range n {
				ops = append(ops, hit(fmt.Sprint(name, i), limit, "k"))
			}
			for _, verb := range []store.Verb{store.Take, store.Check, store.Record, store.Refund} {
				calls := []store.Call{{Verb: verb, Ops: ops}}
				got := testing.AllocsPerRun(300, func() { do(t, s, calls) })
				if got != 0 {
					t.Errorf("%s: %v of %d ops: got %v allocations, want none", name, verb, n, got)
				}
			}
		}
	}
	op := []store.Op{hit("new", window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}), "")}
	calls := []store.Call{{Verb: store.Take, Ops: op}}
	rng := rand.New(rand.NewPCG(1, 1))
	key := make([]byte, 16)
	if got := testing.AllocsPerRun(20_000, func() {
		for i := range key {
			key[i] = byte(rng.Uint32())
		}
		op[0].Key = key
		do(t, s, calls)
	}); got != 0 {
		t.Errorf("new keys: got %v allocations each, want less than one", got)
	}
}

// Segments split, merge and shrink under concurrent calls.
func TestGrowthUnderLoad(t *testing.T) {
	t.Parallel()
	o := open(t, memstore.WithShards(2))
	s := o.Store.(*memstore.Store)
	o.Set(1e15)
	limit := window.MustCompile(window.Limit{Quota: 100, Window: window.Sliding(time.Hour)})
	space := store.NewSpace("", "s", "", 0)
	const goroutines, keys = 8, 3000
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			for _, k := range rng.Perm(keys) {
				ops := []store.Op{
					{Space: space, Limit: limit, Key: fmt.Append(nil, "shared", k), N: 1},
					{Space: space, Limit: limit, Key: fmt.Append(nil, "own", i, "/", k), N: 2},
				}
				if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
					t.Error(err)
				}
				if k%100 == 0 {
					s.Sweep(100)
					s.Stats()
				}
				if k%2 == 0 {
					if err := s.Forget(t.Context(), &ops[1]); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if got, want := keysOf(s, "s"), int64(keys+goroutines*keys/2); got != want {
		t.Errorf("got %d keys, want %d", got, want)
	}
	for k := range keys {
		ops := []store.Op{
			{Space: space, Limit: limit, Key: fmt.Append(nil, "shared", k)},
			{Space: space, Limit: limit, Key: fmt.Append(nil, "own", k%goroutines, "/", k)},
		}
		if err := store.Do(t.Context(), s, store.Check, ops); err != nil {
			t.Fatal(err)
		}
		if shared, own := ops[0].Result.Used, ops[1].Result.Used; shared != goroutines || own != int64(2*(k%2)) {
			t.Fatalf("key %d: got %d and %d used, want %d and %d", k, shared, own, goroutines, 2*(k%2))
		}
	}
}

// One large state is read at a time, because each read copies it. Small ones are read meanwhile.
func TestLargeReadsTakeTurns(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	small := hit("s", window.MustCompile(window.Limit{Quota: 10_000, Window: window.Sliding(time.Hour), Measure: window.Distinct}), "small")
	large := small
	large.Key = []byte("large")
	for i := range 10_000 {
		large.Member = fmt.Appendf(nil, "member %d", i)
		if err := store.Do(t.Context(), s, store.Take, []store.Op{large}); err != nil {
			t.Fatal(err)
		}
	}
	unlock := memstore.LockLargeReads(s)
	var used atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r, err := s.Read(t.Context(), &large); err == nil {
			used.Store(r.Used)
		}
	}()
	for range 1000 {
		if _, err := s.Read(t.Context(), &small); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	if got := used.Load(); got != 0 {
		t.Errorf("got %d hits of a large state beside another one that is read, want none yet", got)
	}
	unlock()
	if <-done; used.Load() != 10_000 {
		t.Errorf("got %d hits, want 10000", used.Load())
	}
}
