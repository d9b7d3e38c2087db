package pgstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// TestMain fails if a test leaks a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var opened atomic.Int64

// open makes a store with its own tables and a clock that tests set. What the store does in time is not
// compared: a machine that stands still for seconds ends no transaction.
func open(t testing.TB, n *pgtest.Node) storetest.Opened {
	t.Helper()
	var now atomic.Int64
	url := n.URL("timeout=5m", "idle_in_transaction_session_timeout=0", "lock_timeout=0", "connections=2", "durability=unlogged", fmt.Sprint("prefix=t", opened.Add(1)))
	s, err := pgstore.OpenAt(t.Context(), url, func() window.Instant { return window.Instant(now.Load()) })
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Opened{Store: ready(t, s), Set: func(i window.Instant) { now.Store(int64(i)) }}
}

func TestContract(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t, "-c", "max_connections=400", "-c", "shared_buffers=64MB")
	storetest.Run(t, func(t testing.TB) storetest.Opened { return open(t, n) })
}

func TestAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	steps := 2500
	if testing.Short() {
		steps = 1000
	}
	n := pgtest.Server(t)
	var all sync.WaitGroup
	for seed := range uint64(4) {
		got := open(t, n)
		all.Go(func() { storetest.Compare(t, got, storetest.NewModel(), seed, steps) })
	}
	all.Wait()
}
