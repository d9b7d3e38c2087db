package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
)

// BenchmarkTake measures a take through the store, with its deadline and breaker.
// The references are a store without either, and one INCR.
func BenchmarkTake(b *testing.B) {
	n := redistest.Server(b)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{n.Addr()}, DisableCache: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	one := []store.Op{hourly(1_000_000, "rule", "k")}
	for _, callers := range []int{1, 64, 256} {
		for name, take := range map[string]func(ops []store.Op) error{
			"incr": func([]store.Op) error {
				return client.Do(context.Background(), client.B().Incr().Key("n").Build()).Error()
			},
			"new":  taking(redisstore.New(client)),
			"open": taking(openURL(b, "redis://"+n.Addr()+"?timeout=50ms")),
		} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism((callers + 1) / 2)
				if callers == 1 {
					ops := append([]store.Op(nil), one...)
					for b.Loop() {
						if err := take(ops); err != nil {
							b.Fatal(err)
						}
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					ops := append([]store.Op(nil), one...)
					for pb.Next() {
						if err := take(ops); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

// BenchmarkDo measures 1,000 calls of callers that send them one by one or in one
// batch. Each call has a key of its own.
func BenchmarkDo(b *testing.B) {
	n := redistest.Server(b)
	const size = 1000
	for _, callers := range []int{1, 16} {
		for name, together := range map[string]int{"batch": size, "one by one": 1} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				s := openURL(b, "redis://"+n.Addr())
				used(b, s, hourly(1, "rule", "connects"))
				b.ReportAllocs()
				var outages atomic.Int64
				var all sync.WaitGroup
				share := max(1, b.N/callers)
				b.ResetTimer()
				for caller := range callers {
					all.Go(func() {
						calls := make([]store.Call, size)
						for i := range calls {
							calls[i] = store.Call{Verb: store.Take, Ops: []store.Op{hourly(1_000_000, "rule", fmt.Sprint(caller, "-", i))}}
						}
						for range share {
							for part := range slices.Chunk(calls, together) {
								if err := s.Do(context.Background(), part); err != nil {
									b.Error(err)
								}
							}
							for i := range calls {
								if calls[i].Err != nil {
									outages.Add(1)
								}
							}
						}
					})
				}
				all.Wait()
				done := float64(share * callers * size)
				b.ReportMetric(done/b.Elapsed().Seconds(), "decisions/s")
				b.ReportMetric(100*float64(outages.Load())/done, "%outages")
				b.ReportMetric(b.Elapsed().Seconds()*1000*float64(callers)/float64(share*callers), "ms/batch")
			})
		}
	}
}

func taking(s store.Store) func(ops []store.Op) error {
	return func(ops []store.Op) error { return store.Do(context.Background(), s, store.Take, ops) }
}
