package memstore_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// BenchmarkTakeHold measures a take that holds, and its settle, on a key with so
// many other holds, beside a take that holds nothing.
func BenchmarkTakeHold(b *testing.B) {
	for _, bench := range []struct {
		name  string
		limit window.Limit
	}{
		{"plain", window.Limit{Quota: 100, Window: window.Sliding(time.Minute)}},
		{"hold", window.Limit{Quota: 100, Window: window.Sliding(time.Minute), Hold: time.Minute}},
		{"plain sum", window.Limit{Quota: 100_000, Measure: window.Sum, Window: window.Sliding(time.Minute)}},
		{"hold sum", window.Limit{Quota: 100_000, Measure: window.Sum, Window: window.Sliding(time.Minute), Hold: time.Minute}},
		{"held", window.Limit{Quota: 100, Window: window.Held(time.Minute)}},
	} {
		for _, others := range []int{0, 10, 50} {
			b.Run(fmt.Sprintf("%s/others=%d", bench.name, others), func(b *testing.B) { takeHold(b, bench.limit, others) })
		}
	}
}

func takeHold(b *testing.B, l window.Limit, others int) {
	s := memstore.New()
	defer s.Close()
	limit := window.MustCompile(l)
	const keys = 64 // enough to hide what reading the clock costs
	calls := make([]store.Call, keys)
	for i := range calls {
		op := hit("s", limit, fmt.Sprint("key", i))
		op.Hold = new(store.Hold)
		calls[i].Ops = []store.Op{op}
	}
	var made uint64
	do := func(verb store.Verb) {
		for i := range calls {
			if err := s.Do(b.Context(), calls[i:i+1]); err != nil || !calls[i].Ops[0].Result.Allowed {
				b.Fatal(verb, calls[i].Ops[0].Result, err)
			}
		}
	}
	prepare := func(verb store.Verb) {
		made++
		for i := range calls {
			op := &calls[i].Ops[0]
			if calls[i].Verb = verb; limit.HoldLength() > 0 {
				binary.BigEndian.PutUint64(op.Hold.ID[:], made)
				continue
			}
			op.Hold = nil
			if verb == store.Settle {
				calls[i].Verb = store.Refund
			}
		}
	}
	for range others {
		prepare(store.Take)
		do(store.Take)
	}
	b.ReportAllocs()
	took, ended := time.Duration(1<<62), time.Duration(1<<62)
	for b.Loop() {
		prepare(store.Take)
		began := time.Now()
		do(store.Take)
		took = min(took, time.Since(began))
		made--
		prepare(store.Settle)
		for i := range calls {
			calls[i].Ops[0].N = 0
			if limit.HoldLength() == 0 {
				calls[i].Ops[0].N = 1
			}
		}
		began = time.Now()
		do(store.Settle)
		ended = min(ended, time.Since(began))
		for i := range calls {
			calls[i].Ops[0].N = 1
		}
	}
	b.ReportMetric(float64(took.Nanoseconds())/keys, "min-ns/take")
	b.ReportMetric(float64(ended.Nanoseconds())/keys, "min-ns/end")
}
