package memstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// listed returns the keys of a space, as often as they were found, and how many were not known.
func listed(t *testing.T, s *memstore.Store, op *store.Op) (keys map[string]int, unknown int) {
	t.Helper()
	keys = map[string]int{}
	for after, begun := []byte(nil), false; !begun || after != nil; begun = true {
		var err error
		after, err = s.Keys(t.Context(), op, after, func(key []byte, state window.State, now window.Instant) {
			if key == nil {
				unknown++
				return
			}
			keys[string(key)]++
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return keys, unknown
}

// TestNamesCost states what a key costs in memory under a limit with Export.
func TestNamesCost(t *testing.T) {
	t.Parallel()
	keys := 200_000
	for _, length := range []int{8, 15, 31, 63} {
		var bytes [2]int64
		for i, export := range []bool{false, true} {
			s := memstore.New()
			op := store.Op{
				Space: store.NewSpace("", "s", "s", 0), N: 1,
				Limit: window.MustCompile(window.Limit{Quota: 9, Window: window.Calendar(window.Month, nil), Export: export}),
			}
			for k := range keys {
				op.Key = fmt.Appendf(op.Key[:0], "%0*d", length, k)
				if err := s.Decide(t.Context(), store.Take, []store.Op{op}); err != nil {
					t.Fatal(err)
				}
			}
			bytes[i], _, _ = s.Totals()
		}
		plain, more := bytes[0]/int64(keys), (bytes[1]-bytes[0])/int64(keys)
		t.Logf("a key of %d bytes: %d bytes, and %d more with its name", length, plain, more)
		most := int64(48)
		if length > 15 { // the name is in a block of its segment
			most = int64(52 + length*3/2)
		}
		if more > most || plain > 48 {
			t.Errorf("a key of %d bytes: got %d bytes and %d more with its name, want at most 48 and %d", length, plain, more, most)
		}
	}
}

// TestNames keeps the keys that are counted from when the limit has Export on, also while
// tables grow, keys expire and others are dropped, and lists each once.
func TestNames(t *testing.T) {
	t.Parallel()
	now := window.At(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	s := memstore.New(memstore.WithClock(func() window.Instant { return now }))
	limit := window.Limit{Quota: 9, Window: window.Fixed(time.Minute)}
	plain := window.MustCompile(limit)
	limit.Export = true
	export := window.MustCompile(limit)
	take := func(l *window.Compiled, key string) {
		t.Helper()
		op := store.Op{Space: store.NewSpace("", "s", "s", 0), Limit: l, Key: []byte(key), N: 1}
		if err := s.Decide(t.Context(), store.Take, []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	all := store.Op{Space: store.NewSpace("", "s", "s", 0), Limit: export}
	take(plain, "old")
	take(plain, "old too")
	take(export, "old too")
	if keys, unknown := listed(t, s, &all); unknown != 1 || len(keys) != 1 || keys["old too"] != 1 {
		t.Errorf("got keys %v and %d that are not known, want one of each", keys, unknown)
	}
	for round := range 3 {
		for i := range 20_000 {
			take(export, fmt.Sprint("key ", round, " ", i))
		}
		keys, _ := listed(t, s, &all)
		for i := range 20_000 {
			if n := keys[fmt.Sprint("key ", round, " ", i)]; n != 1 {
				t.Fatalf("round %d: got key %d %d times", round, i, n)
			}
		}
		op := all
		op.Key = []byte(fmt.Sprint("key ", round, " 7"))
		if err := s.Forget(t.Context(), &op); err != nil {
			t.Fatal(err)
		}
		if keys, _ := listed(t, s, &all); keys[string(op.Key)] != 0 {
			t.Errorf("got a key that was forgotten")
		}
		now = now.Add(3 * time.Hour)
	}
	before, _, _ := s.Totals()
	for range 1000 {
		s.Sweep(1 << 20)
	}
	if after, _, _ := s.Totals(); after > before/10 {
		t.Errorf("got %d bytes after all keys have expired, %d before", after, before)
	}
}

// A list goes on in the next process, which has the same hashes, unless that has another number of shards or is a
// store of its own.
func TestListGoesOn(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	op := store.Op{Space: store.NewSpace("", "s", "s", 0), N: 1, Limit: window.MustCompile(window.Limit{Quota: 9, Window: window.Fixed(time.Hour), Export: true})}
	made := func(options ...memstore.Option) *memstore.Store {
		s := memstore.New(options...)
		for k := range keys {
			op.Key = fmt.Append(nil, k)
			if err := s.Decide(t.Context(), store.Take, []store.Op{op}); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	first := made(memstore.WithJournal(secret), memstore.WithShards(64))
	for name, c := range map[string]struct {
		next *memstore.Store
		want error
	}{
		"as many shards": {made(memstore.WithJournal(secret), memstore.WithShards(64)), nil},
		"fewer":          {made(memstore.WithJournal(secret), memstore.WithShards(16)), store.ErrMoved},
		"more":           {made(memstore.WithJournal(secret), memstore.WithShards(256)), store.ErrMoved},
		"others":         {made(memstore.WithShards(64)), store.ErrMoved},
		"no keys yet":    {memstore.New(memstore.WithShards(64)), store.ErrMoved},
	} {
		found := map[string]int{}
		add := func(key []byte, _ window.State, _ window.Instant) { found[string(key)]++ }
		s, after, err := first, []byte(nil), error(nil)
		for pages := 0; pages == 0 || after != nil && err == nil; pages++ {
			if pages == 20 {
				s = c.next
			}
			after, err = s.Keys(t.Context(), &op, after, add)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", name, err, c.want)
		}
		if c.want != nil {
			continue
		}
		for k := range keys {
			if n := found[fmt.Sprint(k)]; n != 1 {
				t.Fatalf("%s: got key %d %d times", name, k, n)
			}
		}
	}
}
