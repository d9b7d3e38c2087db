package datadir_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// open returns a store with a clock that tests set.
func open(t testing.TB, opts ...datadir.Option) storetest.Opened {
	t.Helper()
	var now atomic.Int64
	clock := datadir.WithClock(func() window.Instant { return window.Instant(now.Load()) })
	s, err := datadir.Open(t.TempDir(), append(opts, clock)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return storetest.Opened{Store: s, Set: func(i window.Instant) { now.Store(int64(i)) }}
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Opened { return open(t) })
}

func TestContractWithSyncAlways(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Opened {
		return open(t, datadir.WithDisk(datadir.NewDisk()), datadir.WithSync(datadir.Always))
	})
}

// restarted is a store that at times ends in order, and goes on as another one on the
// same disk.
type restarted struct {
	t     testing.TB
	disk  *datadir.Disk
	now   atomic.Int64
	left  int // calls until the next restart
	every int
	*datadir.Store
}

func newRestarted(t testing.TB, every int) *restarted {
	r := &restarted{t: t, disk: datadir.NewDisk(), every: every, left: every}
	r.start()
	t.Cleanup(func() { r.Close() })
	return r
}

func (r *restarted) start() {
	r.t.Helper()
	s, err := datadir.Open("", datadir.WithDisk(r.disk), datadir.WithInterval(time.Millisecond),
		datadir.WithShards(1<<(r.now.Load()%7)), // the number may change
		datadir.WithClock(func() window.Instant { return window.Instant(r.now.Load()) }),
		datadir.WithEvents(func(e datadir.Event) {
			if e.Kind != datadir.Loaded {
				r.t.Errorf("got event %v, want none but loaded", e)
			}
		}))
	if err != nil {
		r.t.Fatal(err)
	}
	r.Store = s
}

func (r *restarted) again() {
	if r.left--; r.left > 0 {
		return
	}
	r.left = r.every
	if err := r.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.start()
}

func (r *restarted) Do(ctx context.Context, calls []store.Call) error {
	r.again()
	return r.Store.Do(ctx, calls)
}

func (r *restarted) opened() storetest.Opened {
	return storetest.Opened{Store: r, Set: func(i window.Instant) { r.now.Store(int64(i)) }}
}

// Every kind of window, with holds and bans, goes on after restarts as if there had
// been none.
func TestRestartsChangeNothing(t *testing.T) {
	t.Parallel()
	for seed, every := range []int{5, 40, 300} {
		storetest.Compare(t, newRestarted(t, every).opened(), storetest.NewModel(), uint64(seed), 300)
	}
}

func FuzzRestartsChangeNothing(f *testing.F) {
	f.Add(uint64(1))
	f.Add(uint64(13)) // has few bans
	f.Fuzz(func(t *testing.T, seed uint64) {
		storetest.Compare(t, newRestarted(t, 5+int(seed%50)).opened(), storetest.NewModel(), seed, 200)
	})
}
