package memstore_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// A keyspace that is empty time and again is dropped while calls use it. No hit
// is lost: a quota of one, given back at once, admits one call at a time.
func TestDropInUse(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	s := memstore.New(memstore.WithShards(1), memstore.WithMachine(func() (steady, wall window.Instant) {
		at := window.Instant(now.Add(int64(time.Hour / time.Microsecond))) // tables grow idle between calls
		return at, at
	}))
	defer s.Close()
	l := window.MustCompile(window.Limit{Quota: 1, Window: window.Sliding(window.MaxLength)})
	space := store.NewSpace("", "one", "", 0)

	var inside, admitted atomic.Int64
	var done atomic.Bool
	var takers, sweeper sync.WaitGroup
	sweeper.Go(func() {
		for !done.Load() {
			s.Sweep(1)
		}
	})
	for range 8 {
		takers.Go(func() {
			ops := []store.Op{{Space: space, Limit: l, Key: []byte("k"), N: 1}}
			for range 2000 {
				if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
					t.Error(err)
					return
				}
				if !ops[0].Result.Allowed {
					continue
				}
				admitted.Add(1)
				if n := inside.Add(1); n != 1 {
					t.Errorf("got %d inside at once, want 1", n)
				}
				inside.Add(-1)
				if err := store.Do(t.Context(), s, store.Refund, ops); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	takers.Wait()
	done.Store(true)
	sweeper.Wait()
	if admitted.Load() == 0 {
		t.Error("got none admitted, want some")
	}
	if n := keysOf(s, "one"); n != 0 {
		t.Errorf("after all was given back: got %d keys, want 0", n)
	}
}
