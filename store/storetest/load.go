package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// concurrently calls f in 64 goroutines that start together, and waits for them.
func concurrently(f func(i int)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range 64 {
		wg.Go(func() {
			<-gate
			f(i)
		})
	}
	close(gate)
	wg.Wait()
}

// Of 1280 concurrent takes of one key, exactly the quota is admitted, in every
// kind of window.
func oneKeyUnderLoad(s *stage) {
	for _, w := range []window.Window{
		window.Sliding(time.Hour),
		window.Cells(time.Hour, 0),
		window.Fixed(time.Hour),
		window.Calendar(window.Day, nil),
		window.Bucket(time.Hour, 0),
	} {
		if w.Kind == window.KindSliding {
			w.Precision = 1000
		}
		op := hit(w.ID(), window.MustCompile(window.Limit{Quota: 1000, Window: w}), "k")
		var admitted atomic.Int64
		concurrently(func(int) {
			for range 20 {
				ops := []store.Op{op}
				if err := store.Do(s.Context(), s.Store, store.Take, ops); err != nil {
					s.Errorf("%v: got error %v", w, err)
				} else if ops[0].Result.Allowed {
					admitted.Add(1)
				}
			}
		})
		if got := admitted.Load(); got != 1000 {
			s.Errorf("%v: got %d of 1280 admitted, want 1000", w, got)
		}
		s.used(1000, op)
	}
}

// Calls that take three of five keys in any order count exactly what they
// admit. A store that locked keys in the order of the ops would deadlock; one
// that counted an op before all have admitted would count more than it admits.
func severalKeysUnderLoad(s *stage) {
	const keys = 5
	var (
		ops      [keys]store.Op
		admitted [keys]atomic.Int64
	)
	for i := range ops {
		ops[i] = hit(fmt.Sprint("space", i%3), hourly(int64(60+20*i)), fmt.Sprint("k", i))
	}
	concurrently(func(i int) {
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		for range 15 {
			three := rng.Perm(keys)[:3]
			call := []store.Op{ops[three[0]], ops[three[1]], ops[three[2]]}
			if err := store.Do(s.Context(), s.Store, store.Take, call); err != nil {
				s.Errorf("got error %v", err)
				return
			}
			if call[0].Result.Allowed && call[1].Result.Allowed && call[2].Result.Allowed {
				for _, k := range three {
					admitted[k].Add(1)
				}
			}
		}
	})
	for i, op := range ops {
		got := admitted[i].Load()
		if got > op.Limit.Capacity() {
			s.Errorf("key %d: got %d admitted, want at most %d", i, got, op.Limit.Capacity())
		}
		s.used(got, op)
	}
}
