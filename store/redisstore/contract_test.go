package redisstore_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// connect returns a client of the server at addr. It is closed with the test.
func connect(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var opened atomic.Int64

// open makes a store with its own keys and a clock that tests set.
func open(t testing.TB, c rueidis.Client) storetest.Opened {
	var now atomic.Int64
	s := redisstore.New(c, fmt.Sprint("t", opened.Add(1)))
	redisstore.SetClock(s, func() window.Instant { return window.Instant(now.Load()) })
	t.Cleanup(func() { s.Close() })
	return storetest.Opened{Store: s, Set: func(i window.Instant) { now.Store(int64(i)) }}
}

func TestContract(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	storetest.Run(t, func(t testing.TB) storetest.Opened { return open(t, c) })
}

// WEIR_LONG=1 makes it 100,000 short schedules of holds, and a million steps of the
// other parts.
func TestAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	const callers = 4
	rounds, steps := 1, 2500
	if testing.Short() {
		steps = 1000
	}
	if os.Getenv("WEIR_LONG") == "1" {
		rounds = 100
	}
	c := connect(t, redistest.Server(t).Addr())
	for round := range rounds {
		var all sync.WaitGroup
		for caller := range callers {
			got, seed := open(t, c), uint64(round*callers+caller)
			all.Go(func() { storetest.Compare(t, got, storetest.NewModel(), seed, steps) })
		}
		all.Wait()
		if err := c.Do(t.Context(), c.B().Flushall().Build()).Error(); err != nil { // the memory of the machine is bounded
			t.Fatal(err)
		}
	}
}
