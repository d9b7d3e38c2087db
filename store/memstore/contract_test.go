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

// Holds and bans are as the model's, with several ops of a call in one shard and
// in different ones.
func TestHoldsAgreeWithModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		storetest.CompareHolds(t, open(t, memstore.WithShards(1+int(seed)%4)), storetest.NewModel(), seed, 2000)
	}
}

func TestHoldContract(t *testing.T) {
	t.Parallel()
	storetest.RunHolds(t, func(t testing.TB) storetest.Opened { return open(t) })
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Opened { return open(t) })
}

func TestAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		shards := []int{1, 2, 32, 256}[seed%4] // many ops of a call in one, or each in its own
		storetest.Compare(t, open(t, memstore.WithShards(shards)), storetest.NewModel(), seed, 5000)
	}
}

func FuzzAgreesWithTheModel(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		storetest.Compare(t, open(t, memstore.WithShards(1)), storetest.NewModel(), seed, 2000)
	})
}
