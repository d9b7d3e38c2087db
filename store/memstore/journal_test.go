package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// copyOf is what a program knows of a store from its journal.
type copyOf struct {
	states map[string]map[uint64][]uint64 // by space and key
	parts  map[string]journal.Part
}

func newCopy() *copyOf {
	return &copyOf{make(map[string]map[uint64][]uint64), make(map[string]journal.Part)}
}

// read adds all that next visits.
func (c *copyOf) read(next func(func(journal.Part, uint64, []uint64)) bool) {
	for next(func(p journal.Part, key uint64, state []uint64) {
		id := p.Space.ID()
		c.parts[id] = p
		if c.states[id] == nil {
			c.states[id] = make(map[uint64][]uint64)
		}
		if c.states[id][key] = slices.Clone(state); len(state) == 0 {
			delete(c.states[id], key)
		}
	}) {
	}
}

// restore puts the copy into another store.
func (c *copyOf) restore(s *memstore.Store) {
	for id, states := range c.states {
		r := s.Journal().Restore(c.parts[id])
		for key, state := range states {
			r.Put(key, state)
		}
	}
}

var secret = journal.Secret{1, 2, 3}

// What the journal visits is what the store has: at any time, another store that was
// given it answers the same calls alike. So does one that was given a walk.
func TestJournalHasEveryChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		var now atomic.Int64
		clock := memstore.WithClock(func() window.Instant { return window.Instant(now.Load()) })
		s := memstore.New(clock, memstore.WithJournal(secret), memstore.WithShards(8<<(seed%3)))
		seen, changes := newCopy(), s.Journal().Changes()
		set := func(i window.Instant) { now.Store(int64(i)) }
		r := rand.New(rand.NewPCG(seed, 1))
		limits := []*window.Compiled{
			window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}),
			window.MustCompile(window.Limit{Quota: 5, Window: window.Fixed(time.Hour)}),
			window.MustCompile(window.Limit{Quota: 3, Window: window.Sliding(time.Hour), Measure: window.Distinct}),
		}
		op := func() store.Op {
			i := r.IntN(len(limits))
			return store.Op{
				Space: store.NewSpace("", fmt.Sprint(i), "", 0), Limit: limits[i], Key: fmt.Append(nil, r.IntN(300)),
				Member: []byte{byte(r.IntN(9))}, N: int64(r.IntN(3)), Role: store.Role(r.IntN(4)), CountDenied: r.IntN(4) == 0,
			}
		}
		set(1 << 50)
		for range 20 {
			for range r.IntN(400) {
				now.Add(r.Int64N(int64(10 * time.Second / time.Microsecond)))
				o := op()
				var err error
				if verb := store.Verb(r.IntN(5)); verb == 4 {
					err = s.Forget(t.Context(), &o)
				} else {
					err = store.Do(t.Context(), s, verb, []store.Op{o})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			seen.read(changes.Next)
			walked := newCopy()
			walked.read(s.Journal().Walk().Next)
			for _, c := range []*copyOf{seen, walked} {
				again := memstore.New(clock, memstore.WithJournal(secret))
				c.restore(again)
				for i, l := range limits {
					for key := range 300 {
						o := store.Op{Space: store.NewSpace("", fmt.Sprint(i), "", 0), Limit: l, Key: fmt.Append(nil, key)}
						got, _ := again.Read(t.Context(), &o)
						want, _ := s.Read(t.Context(), &o)
						if fmt.Sprint(got) != fmt.Sprint(want) {
							t.Fatalf("seed %d, limit %d, key %d: got %+v, want %+v", seed, i, key, got, want)
						}
					}
				}
				_ = again.Close()
			}
		}
		_ = s.Close()
	}
}

// The journal knows what takes of hot keys counted without a lock, while they run.
func TestJournalOfHotKeys(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.WithJournal(secret), memstore.WithShards(8))
	defer s.Close()
	l := window.MustCompile(window.Limit{Quota: 1 << 40, Window: window.Fixed(time.Hour)})
	hot := store.NewSpace("", "hot", "", 0)
	take := func(key string) {
		if _, err := one(t.Context(), s, store.Take, hot, l, key, "", 1); err != nil {
			t.Error(err)
		}
	}
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		take(key) // makes the shards
	}
	memstore.PromoteAll(memstore.KeyspaceOf(s, hot))
	var takers, reader sync.WaitGroup
	var done atomic.Bool
	for g := range 4 {
		takers.Go(func() {
			for i := range 20_000 {
				take(keys[(i+g)%3])
			}
		})
	}
	seen, changes := newCopy(), s.Journal().Changes()
	reader.Go(func() {
		for !done.Load() {
			seen.read(changes.Next)
		}
	})
	takers.Wait()
	done.Store(true)
	reader.Wait()
	seen.read(changes.Next)
	sum := int64(0)
	counted := memstore.New(memstore.WithJournal(secret))
	seen.restore(counted)
	for _, key := range keys {
		r, _ := counted.Read(t.Context(), &store.Op{Space: hot, Limit: l, Key: []byte(key)})
		sum += r.Used
	}
	if want := int64(3 + 4*20_000); sum != want {
		t.Fatalf("got %d in the journal, want %d", sum, want)
	}
	for _, key := range keys {
		take(key)
	}
	for range 10 {
		take("a")
		take("b")
		seen.read(changes.Next)
		again := memstore.New(memstore.WithJournal(secret))
		seen.restore(again)
		walked := newCopy()
		walked.read(s.Journal().Walk().Next)
		fromWalk := memstore.New(memstore.WithJournal(secret))
		walked.restore(fromWalk)
		for _, key := range keys {
			got, _ := again.Read(t.Context(), &store.Op{Space: hot, Limit: l, Key: []byte(key)})
			other, _ := fromWalk.Read(t.Context(), &store.Op{Space: hot, Limit: l, Key: []byte(key)})
			if got.Used != other.Used || got.Used == 0 {
				t.Errorf("key %s: got %d by the changes and %d by a walk, want the same", key, got.Used, other.Used)
			}
		}
	}
	r, _ := s.Read(t.Context(), &store.Op{Space: hot, Limit: l, Key: []byte("a")})
	again := memstore.New(memstore.WithJournal(secret))
	seen.restore(again)
	if got, _ := again.Read(t.Context(), &store.Op{Space: hot, Limit: l, Key: []byte("a")}); got.Used != r.Used {
		t.Errorf("key a: got %d, want %d", got.Used, r.Used)
	}
}

// What a reader has taken and not read yet counts to the bound of what is tracked.
func TestOverflowWhileReading(t *testing.T) {
	t.Parallel()
	const keys = 300_000
	s := memstore.New(memstore.WithJournal(secret), memstore.WithShards(8))
	defer s.Close()
	l := window.MustCompile(window.Limit{Quota: 5, Window: window.Fixed(time.Hour)})
	space := store.NewSpace("", "s", "", 0)
	takeAll := func() {
		for key := range keys {
			if _, err := one(t.Context(), s, store.Take, space, l, fmt.Sprint(key), "", 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	takeAll()
	if s.Journal().Overflowed() {
		t.Fatal("got an overflow after each key has changed once, want none")
	}
	s.Journal().Changes().Next(func(journal.Part, uint64, []uint64) {})
	takeAll()
	if !s.Journal().Overflowed() {
		t.Error("got no overflow, want one")
	}
}

// A secret that is adopted while another one is rotated does not undo that.
func TestSecretsOfTwoCallers(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.WithJournal(journal.Secret{}))
	defer s.Close()
	var end atomic.Bool
	var adopting sync.WaitGroup
	defer adopting.Wait()
	defer end.Store(true)
	adopting.Go(func() {
		for n := byte(0); !end.Load(); n++ {
			s.Journal().AdoptSecret([16]byte{n}, window.At(time.Now().Add(time.Hour)))
			runtime.Gosched() // it would keep a single processor
		}
	})
	for range 20_000 {
		if err := s.RotateSecret(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		rotated := s.Secrets(false)[0]
		runtime.Gosched()
		if s.Secrets(false)[0] != rotated {
			t.Fatal("a secret of before is used again")
		}
	}
}
