package memstore_test

import (
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// open returns a store with a clock that tests set.
func open(t testing.TB, opts ...memstore.Option) storetest.Opened {
	var now atomic.Int64
	clock := memstore.WithClock(func() window.Instant { return window.Instant(now.Load()) })
	s := memstore.New(append(opts, clock)...)
	t.Cleanup(func() { s.Close() })
	return storetest.Opened{Store: s, Set: func(i window.Instant) { now.Store(int64(i)) }}
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Opened { return open(t) })
}

// A call with several ops has them in one shard, or each in its own.
func TestAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		shards := []int{1, 2, 3, 4, 32, 256}[seed%6]
		storetest.Compare(t, open(t, memstore.WithShards(shards)), storetest.NewModel(), seed, 2000)
	}
}

func FuzzAgreesWithTheModel(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		storetest.Compare(t, open(t, memstore.WithShards(1)), storetest.NewModel(), seed, 2000)
	})
}
