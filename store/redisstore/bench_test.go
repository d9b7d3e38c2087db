package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
)

// BenchmarkDo measures 1,000 calls of callers that send them one by one or in one
// batch. Each call has its own key.
func BenchmarkDo(b *testing.B) {
	n := redistest.Server(b)
	const size = 1000
	for _, callers := range []int{1, 16} {
		for name, together := range map[string]int{"batch": size, "one by one": 1} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				s := openURL(b, at(n.Addr()))
				all := make([][]store.Call, callers)
				for i := range all {
					all[i] = takes(size, hourly(1_000_000, fmt.Sprint("rule", i), ""))
				}
				send := func(rounds int) (outages int64) {
					var met atomic.Int64
					var sending sync.WaitGroup
					for _, calls := range all {
						sending.Go(func() { met.Add(sendAll(b, s, calls, together, rounds)) })
					}
					sending.Wait()
					return met.Load()
				}
				redistest.Eventually(b, "all connections are made", func() bool { return send(1) == 0 })
				rounds := max(1, b.N/callers)
				b.ReportAllocs()
				b.ResetTimer()
				outages := send(rounds)
				done := float64(rounds * callers * size)
				b.ReportMetric((done-float64(outages))/b.Elapsed().Seconds(), "decisions/s")
				b.ReportMetric(b.Elapsed().Seconds()*1000/float64(rounds), "ms/batch")
				b.ReportMetric(100*float64(outages)/done, "%outages")
			})
		}
	}
}

// sendAll sends calls some rounds, so many together, and returns how many met an
// outage.
func sendAll(b *testing.B, s store.Store, calls []store.Call, together, rounds int) (outages int64) {
	for range rounds {
		for part := range slices.Chunk(calls, together) {
			if err := s.Do(context.Background(), part); err != nil {
				b.Error(err)
			}
		}
		for i := range calls {
			if calls[i].Err != nil {
				outages++
			}
		}
	}
	return outages
}
