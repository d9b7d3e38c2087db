package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// placesFor returns places for keys of a space, whose answers are in results.
func placesFor(s *memstore.Store, space *store.Space, limit *window.Compiled, keys []string) (places []memstore.Place, results []window.Result) {
	places, results = make([]memstore.Place, len(keys)), make([]window.Result, len(keys))
	for i, key := range keys {
		places[i].Set(space, limit, store.Enforce, s.Hash([]byte(key)), window.Hits{N: 1}, &results[i])
	}
	return places, results
}

// Calls of several new and known keys in one space, from several goroutines, keep to the
// most keys of the space. Each counts all of its keys or none, and what was reserved for
// a call that counts nothing is given back.
func TestFewKeepsToMaxKeys(t *testing.T) {
	t.Parallel()
	const most, quota = 40, 3
	o := open(t)
	o.Set(1e15)
	s := o.Store.(*memstore.Store)
	space := store.NewSpace("", "small", "", most)
	limit := window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(time.Minute)})
	var mu sync.Mutex
	counted := map[string]int64{}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 5))
			for range 500 {
				keys := make([]string, 1+r.IntN(memstore.MostFew))
				from := r.IntN(60)
				for i := range keys {
					keys[i] = fmt.Sprint("k", from+i)
				}
				places, results := placesFor(s, space, limit, keys)
				_, done, err := s.Few(t.Context(), store.Take, places)
				if err != nil {
					t.Error(err)
				}
				if n := s.Keys(space); n > most+4 { // each goroutine may have tried one
					t.Errorf("got %d keys, want at most %d", n, most)
				}
				allowed := done
				for i := range results {
					allowed = allowed && results[i].Allowed
				}
				if !allowed {
					continue
				}
				mu.Lock()
				for _, key := range keys {
					counted[key]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if got, want := s.Keys(space), int64(len(counted)); got != want || want > most {
		t.Errorf("got %d keys, want the %d that were counted, at most %d", got, want, most)
	}
	for key, want := range counted {
		op := store.Op{Space: space, Limit: limit, Key: []byte(key), N: 1}
		if r, err := s.Read(t.Context(), &op); err != nil || r.Used != want || want > quota {
			t.Errorf("%s: got %d used, %v, want %d", key, r.Used, err, want)
		}
	}
}

// Few leaves to Call what it cannot decide, and counts nothing then.
func TestFewLeavesToCall(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.Set(1e15)
	s := o.Store.(*memstore.Store)
	limit := window.MustCompile(window.Limit{Quota: 3, Window: window.Sliding(time.Minute)})
	small, wide := store.NewSpace("", "small", "", 1), store.NewSpace("", "wide", "", 100)
	for name, tc := range map[string]struct {
		space *store.Space
		keys  []string
	}{
		"the same key twice": {wide, []string{"a", "b", "a"}},
		"no room for a key":  {small, []string{"a", "b"}},
	} {
		places, _ := placesFor(s, tc.space, limit, tc.keys)
		if _, done, err := s.Few(t.Context(), store.Take, places); done || err != nil {
			t.Errorf("%s: got %v, %v, want that it is not done", name, done, err)
		}
		if n := s.Keys(tc.space); n != 0 {
			t.Errorf("%s: got %d keys, want none", name, n)
		}
	}
}

// A call for ten keys allocates nothing.
func TestFewAllocatesNothing(t *testing.T) {
	s := memstore.New()
	defer s.Close()
	limit := window.MustCompile(window.Limit{Quota: 1 << 20, Window: window.Fixed(time.Hour)})
	space := store.NewSpace("", "wide", "", 100)
	var hashes []memstore.KeyHash
	for i := range 10 {
		hashes = append(hashes, s.Hash(fmt.Append(nil, "k", i)))
	}
	results := make([]window.Result, len(hashes))
	ops := make([]store.Op, memstore.MostFew)
	for i := range ops {
		ops[i] = store.Op{Space: space, Limit: limit, Key: fmt.Append(nil, "k", i), N: 1}
	}
	if n := testing.AllocsPerRun(200, func() {
		var places [memstore.MostFew]memstore.Place
		for i := range results {
			places[i].Set(space, limit, store.Enforce, hashes[i], window.Hits{N: 1}, &results[i])
		}
		if _, done, err := s.Few(t.Context(), store.Take, places[:len(results)]); !done || err != nil {
			t.Fatal(done, err)
		}
	}); n != 0 {
		t.Errorf("Few: got %v allocations, want none", n)
	}
	if n := testing.AllocsPerRun(200, func() {
		if err := s.Call(t.Context(), store.Take, ops); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Call: got %v allocations, want none", n)
	}
}
