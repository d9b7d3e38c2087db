package memstore_test

import (
	"encoding/binary"
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

// Hot keys answer as the model does under limits with bans, holds, conditions or members too, and under limits
// that replace each other, whatever becomes of a take.
func TestHotKeysOfOtherLimits(t *testing.T) {
	t.Parallel()
	hour, bucket, ban := window.Sliding(time.Hour), window.Bucket(time.Hour, 0), window.Ban{For: time.Minute}
	for name, limits := range map[string][]window.Limit{
		"plain":       {{Quota: 10, Window: hour}},
		"ban":         {{Quota: 10, Window: hour, Ban: ban}},
		"hold":        {{Quota: 5, Window: hour, Hold: time.Minute}},
		"few holds":   {{Quota: 10, Window: hour, Hold: 20 * time.Minute, MaxHolds: 3}},
		"hold ever":   {{Quota: 5, Window: window.Ever(), Hold: time.Minute, Release: true}},
		"held":        {{Quota: 3, Window: window.Held(time.Minute)}},
		"hold, ban":   {{Quota: 10, Window: bucket, Hold: time.Minute, Ban: ban}},
		"after":       {{Quota: 3, Window: hour, After: window.After{Count: 5, Window: window.Fixed(time.Minute)}}},
		"after ever":  {{Quota: 3, Window: bucket, After: window.After{Count: 5, Window: window.Ever()}}},
		"distinct":    {{Quota: 10, Window: window.Fixed(time.Hour), Measure: window.Distinct}},
		"other quota": {{Quota: 10, Window: window.Fixed(time.Hour)}, {Quota: 12, Window: window.Fixed(time.Hour)}},
		"from hold":   {{Quota: 3, Window: hour, Hold: time.Hour}, {Quota: 3, Window: hour, Ban: ban}, {Quota: 3, Window: hour}},
	} {
		var compiled []*window.Compiled
		for _, l := range limits {
			compiled = append(compiled, window.MustCompile(l))
		}
		var now atomic.Int64
		now.Store(1e15)
		clock := func() (steady, wall window.Instant) { i := window.Instant(now.Load()); return i, i }
		h, m := &heated{Store: memstore.New(memstore.WithMachine(clock))}, storetest.NewModel()
		t.Cleanup(func() { h.Close() })
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 10000 {
			if i%10 == 0 {
				m.Set(window.Instant(now.Add(r.Int64N([]int64{2e6, 60e6, 900e6}[r.IntN(3)]))))
			}
			got, verb := hit(name, compiled[i/40%len(compiled)], "k"), store.Take
			got.Member = fmt.Append(nil, r.IntN(15))
			switch r.IntN(20) {
			case 0:
				got.Role = []store.Role{store.Always, store.Look}[r.IntN(2)]
			case 1:
				got.CountDenied = got.Limit.HoldLength() == 0
			case 2:
				verb = []store.Verb{store.Check, store.Refund, store.Settle, store.Renew, store.Cancel}[r.IntN(5)]
			}
			want := got
			if r.IntN(2) == 0 || verb.NeedsReceipt() {
				hold := store.Hold{}
				take := i
				if verb.NeedsReceipt() {
					take -= r.IntN(20)
				}
				binary.BigEndian.PutUint64(hold.ID[:], uint64(take+1))
				other := hold
				got.Hold, want.Hold = &hold, &other
			}
			a, b := []store.Op{got}, []store.Op{want}
			if err := errors.Join(store.Do(t.Context(), h, verb, a), store.Do(t.Context(), m.Store, verb, b)); err != nil {
				t.Fatal(err)
			}
			if a[0].Result != b[0].Result || got.Hold != nil && *got.Hold != *want.Hold {
				t.Errorf("%s, call %d, %v: got %+v, hold %+v, want %+v, hold %+v", name, i, verb, a[0].Result, got.Hold, b[0].Result, want.Hold)
				break
			}
		}
	}
}
