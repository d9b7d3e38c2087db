package memstore_test

import (
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// open makes a store with a clock that tests set.
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
