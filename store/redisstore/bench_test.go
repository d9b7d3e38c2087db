package redisstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
)

// BenchmarkTake is what a store costs around the script: its deadline, breaker
// and, on a cluster, its slots. The references are a store without any of it,
// and one INCR.
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

func taking(s store.Store) func(ops []store.Op) error {
	return func(ops []store.Op) error { return store.Do(context.Background(), s, store.Take, ops) }
}
