package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// TestEnds counts in a log of more than three hits through all ways of a store, and
// compares each answer with the one of package window. Takes of one hit are decided from
// the first and the last date, which every other way has to keep true.
func TestEnds(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 9))
	now := window.Instant(1e15)
	limit := window.MustCompile(window.Limit{Quota: 12, Window: window.Sliding(time.Millisecond)})
	other := window.MustCompile(window.Limit{Quota: 1 << 40, Window: window.Fixed(time.Hour)})
	for _, others := range []int{1, 8} { // the other ops of calls of several
		s := memstore.New(memstore.WithClock(func() window.Instant { return now }))
		twins := make([]window.State, 5)
		ops := make([]store.Op, 1+others)
		for i := range ops {
			ops[i] = hit(fmt.Sprint("other ", i), other, "key")
		}
		long := 0
		for range 20_000 {
			now += window.Instant(rnd.Int64N(160) - 50) // the clock goes back, too
			k := rnd.IntN(len(twins))
			h := window.Hits{N: 1}
			verb, count := store.Take, limit.Take
			switch rnd.IntN(12) {
			case 0:
				verb, count = store.Refund, limit.Refund
			case 1:
				verb, count = store.Record, limit.Record
			case 2:
				h.N = rnd.Int64N(4)
			}
			var want, got window.Result
			twins[k], want = count(twins[k], now, h)
			var err error
			if key := fmt.Sprint("key ", k); rnd.IntN(2) == 0 {
				got, err = s.One(t.Context(), verb, store.NewSpace("", "s", "", 0), limit, key, "", h.N)
			} else {
				ops[0] = hit("s", limit, key)
				ops[0].N = h.N
				err = store.Do(t.Context(), s, verb, ops)
				got = ops[0].Result
			}
			if err != nil || got != want {
				t.Fatalf("%s of %d on %v, with %d others: got %+v, %v, want %+v", verb, h.N, twins[k], others, got, err, want)
			}
			if len(twins[k]) > 3 {
				long++
			}
		}
		if long < 5000 {
			t.Errorf("got %d calls with more than three hits, want more", long)
		}
	}
}
