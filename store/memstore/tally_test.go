package memstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// A tally is the sum over all keys of what Read tells of each, however many keys
// there are.
func TestTally(t *testing.T) {
	t.Parallel()
	limits := map[string]window.Limit{
		"hold": {Quota: 5, Window: window.Sliding(time.Minute), Hold: time.Minute},
		"held": {Quota: 5, Window: window.Held(time.Minute)},
		"ban":  {Quota: 2, Window: window.Fixed(time.Hour), Ban: window.Ban{For: time.Minute}},
		"both": {Quota: 2, Window: window.Cells(time.Hour, 4), Hold: time.Minute, Ban: window.Ban{For: time.Minute}},
		"none": {Quota: 2, Window: window.Sliding(time.Hour)},
	}
	now := window.At(time.Unix(1_000_000, 0))
	s := memstore.New(memstore.WithClock(func() window.Instant { return now }))
	defer s.Close()
	for name, l := range limits {
		space, limit := store.NewSpace("", name, name, 0), window.MustCompile(l)
		op := func(key, n int) *store.Op {
			hold := &store.Hold{Hold: window.Hold{ID: [12]byte{byte(key), byte(key >> 8), byte(n), 1}}}
			return &store.Op{Space: space, Limit: limit, Key: fmt.Append(nil, key), N: 1, Hold: hold}
		}
		const keys = 3000
		for key := range keys {
			for n := range key % 5 {
				ops := []store.Op{*op(key, n)}
				if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, wait := range []time.Duration{0, 30 * time.Second, 31 * time.Second} {
			now = now.Add(wait)
			var want memstore.Tally
			for key := range keys {
				r, err := s.Read(t.Context(), op(key, 0))
				if err != nil {
					t.Fatal(err)
				}
				want.Holds += int64(len(r.Holds))
				if r.BannedUntil > 0 {
					want.Banned++
				}
			}
			if got := memstore.TallyOf(s, space); got != want {
				t.Errorf("%s after %v: got %+v, want %+v", name, wait, got, want)
			}
			if some := want != (memstore.Tally{}); wait < 31*time.Second && some != (name != "none") {
				t.Errorf("%s after %v: got %+v, want some unless nothing holds or bans", name, wait, want)
			}
		}
	}
	if got := memstore.TallyOf(s, store.NewSpace("", "other", "other", 0)); got != (memstore.Tally{}) {
		t.Errorf("got %+v for a space without keys, want nothing", got)
	}
}

func BenchmarkTally(b *testing.B) {
	s := memstore.New()
	defer s.Close()
	space := store.NewSpace("", "ban", "ban", 0)
	limit := window.MustCompile(window.Limit{Quota: 2, Window: window.Fixed(time.Hour), Ban: window.Ban{For: time.Minute}})
	for key := range 1_000_000 {
		ops := []store.Op{{Space: space, Limit: limit, Key: fmt.Append(nil, key), N: 1, Hold: &store.Hold{}}}
		if err := store.Do(b.Context(), s, store.Take, ops); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		memstore.TallyOf(s, space)
	}
}

// Calls go on while a tally looks.
func TestTallyBesideCalls(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	defer s.Close()
	spaces := map[*store.Space]*window.Compiled{
		store.NewSpace("", "ban", "ban", 0):   window.MustCompile(window.Limit{Quota: 2, Window: window.Fixed(time.Hour), Ban: window.Ban{For: time.Hour}}),
		store.NewSpace("", "hold", "hold", 0): window.MustCompile(window.Limit{Quota: 9, Window: window.Bucket(time.Hour, 0), Hold: time.Hour}),
	}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 4000 {
				for space, limit := range spaces {
					hold := &store.Hold{Hold: window.Hold{ID: [12]byte{byte(g + 1), byte(i), byte(i >> 8)}}}
					ops := []store.Op{{Space: space, Limit: limit, Key: []byte{byte(i % 8)}, N: 1, Hold: hold}}
					if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 100 {
		for space := range spaces {
			if got := memstore.TallyOf(s, space); got.Banned > 8 || got.Holds > 72 {
				t.Errorf("%s: got %+v of 8 keys", space.Name(), got)
			}
		}
	}
	group.Wait()
	for space := range spaces {
		want := map[string]memstore.Tally{"ban": {Banned: 8}, "hold": {Holds: 72}}[space.Name()]
		if got := memstore.TallyOf(s, space); got != want {
			t.Errorf("%s: got %+v, want %+v", space.Name(), got, want)
		}
	}
}
