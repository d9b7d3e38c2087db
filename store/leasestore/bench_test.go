package leasestore_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/leasestore"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// BenchmarkTake compares decisions from a lease with those of the store in memory. With the quota admitted, nearly
// all takes are admitted; with denied, nearly all are denied.
func BenchmarkTake(b *testing.B) {
	for _, quota := range []struct {
		name  string
		quota int64
	}{{"admitted", 1 << 40}, {"denied", 1000}} {
		limit := window.MustCompile(window.Limit{Quota: quota.quota, Window: window.Sliding(time.Second), Lease: window.LeaseStrict})
		for name, s := range map[string]store.Store{
			"memory": memstore.New(),
			"leases": leasestore.New(memstore.New(), func() int { return 1 }),
		} {
			take := func(b *testing.B, ops []store.Op, calls []store.Call) {
				calls[0] = store.Call{Verb: store.Take, Ops: ops}
				if err := s.Do(b.Context(), calls); err != nil || calls[0].Err != nil {
					b.Fatal(err, calls[0].Err)
				}
			}
			room := func() ([]store.Op, []store.Call) {
				return []store.Op{{Space: space, Limit: limit, Key: []byte("key"), N: 1}}, make([]store.Call, 1)
			}
			b.Run(quota.name+"/"+name+"/one", func(b *testing.B) {
				b.ReportAllocs()
				ops, calls := room()
				for b.Loop() {
					take(b, ops, calls)
				}
			})
			b.Run(quota.name+"/"+name+"/parallel", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					ops, calls := room()
					for pb.Next() {
						take(b, ops, calls)
					}
				})
			})
			_ = s.Close()
		}
	}
}
