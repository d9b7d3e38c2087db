package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

func TestSpreads(t *testing.T) {
	t.Parallel()
	now := window.Instant(1e15)
	s := memstore.New(memstore.WithClock(func() window.Instant { return now }))
	space := &store.Space{ID: "s"}
	limit := &window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}
	const keys = 100_000
	for round := range 4 {
		for i := range keys {
			op := store.Op{Space: space, Limit: limit, Key: fmt.Append(nil, "key", i), N: 1}
			if err := s.Do(t.Context(), store.Take, []store.Op{op}); err != nil {
				t.Fatal(err)
			}
		}
		t.Log(round, s.Stats())
	}
	for i := range keys {
		op := store.Op{Space: space, Limit: limit, Key: fmt.Append(nil, "key", i), N: 1}
		ops := []store.Op{op}
		if err := s.Do(t.Context(), store.Check, ops); err != nil || ops[0].Result.Used != 4 {
			t.Fatal(err, i, ops[0].Result)
		}
	}
	now += 3 * 3600e6
	for s.Sweep(10_000) > 0 {
	}
	t.Log(s.Stats())
}
