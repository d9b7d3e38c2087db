package memstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// Hot keys answer as the model does under limits with bans, holds, conditions or members too, and under one whose quota
// changes.
func TestHotKeysOfOtherLimits(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]window.Limit{
		"ban":      {Window: window.Sliding(time.Hour), Ban: window.Ban{For: time.Minute}},
		"hold":     {Window: window.Sliding(time.Hour), Hold: time.Minute},
		"both":     {Window: window.Bucket(time.Hour, 0), Hold: time.Minute, Ban: window.Ban{For: time.Minute}},
		"after":    {Window: window.Sliding(time.Hour), After: window.After{Count: 5, Window: window.Fixed(time.Minute)}},
		"distinct": {Window: window.Fixed(time.Hour), Measure: window.Distinct},
		"changed":  {Window: window.Fixed(time.Hour)},
	} {
		var limits []*window.Compiled
		for limit.Quota = 10; limit.Quota < 13; limit.Quota++ {
			limits = append(limits, window.MustCompile(limit))
		}
		var now atomic.Int64
		clock := func() (steady, wall window.Instant) { i := window.Instant(now.Load()); return i, i }
		h, m := &heated{Store: memstore.New(memstore.WithMachine(clock))}, storetest.NewModel()
		t.Cleanup(func() { h.Close() })
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 3000 {
			at := window.Instant(1e15).Add(time.Duration(i/20) * 15 * time.Second)
			now.Store(int64(at))
			m.Set(at)
			op, verb := hit(name, limits[0], "k"), store.Take
			op.Member = fmt.Append(nil, r.IntN(15))
			got, want := []store.Op{op}, []store.Op{op}
			switch {
			case name == "changed":
				got[0].Limit, want[0].Limit = limits[i/40%3], limits[i/40%3]
			case limit.Hold > 0 && i%20 < 2:
				verb = []store.Verb{store.Take, store.Cancel}[i%2]
				for _, op := range []*store.Op{&got[0], &want[0]} {
					op.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{byte(i / 20), 1}}}
				}
			}
			if err := errors.Join(store.Do(t.Context(), h, verb, got), store.Do(t.Context(), m.Store, verb, want)); err != nil {
				t.Fatal(err)
			}
			if got[0].Result != want[0].Result {
				t.Fatalf("%s, call %d: got %+v, want %+v", name, i, got[0].Result, want[0].Result)
			}
		}
	}
}
