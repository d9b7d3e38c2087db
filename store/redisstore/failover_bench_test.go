package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

const exchanged = "exchanged alive"

// BenchmarkFailover exchanges a primary under load, in three ways, and logs how
// many of the admitted hits are lost, without and with wait_replicas. With wait_replicas
// none may be lost, and few when a primary that lives is exchanged.
//
//	go test ./store/redisstore -run '^$' -bench Failover -benchtime 1x
func BenchmarkFailover(b *testing.B) {
	for _, replicas := range []int{0, 1} {
		for _, way := range []struct {
			name string
			do   func(*redistest.Guarded)
		}{
			{"killed in step", func(g *redistest.Guarded) { g.Primary.Kill() }},
			{"killed, replica 100 ms behind", func(g *redistest.Guarded) {
				g.Replica.Stop()
				time.Sleep(100 * time.Millisecond)
				g.Primary.Kill()
				g.Replica.Continue()
			}},
			{exchanged, func(g *redistest.Guarded) {
				g.Sentinels[0].Must("SENTINEL", "FAILOVER", redistest.MasterName)
			}},
		} {
			b.Run(fmt.Sprintf("wait_replicas=%d/%s", replicas, way.name), func(b *testing.B) {
				for b.Loop() {
					g := redistest.Sentinel(b)
					s := openURL(b, fmt.Sprintf("redis+sentinel://%s/%s?wait_replicas=%d", g.Addrs(), redistest.MasterName, replicas))
					op := hourly(quota*100, "rule", "k")
					d := drive(b, s, 64, op)
					d.answers(10_000)
					way.do(g)
					redistest.Eventually(b, "the replica leads", func() bool { return g.Master() == g.Replica.Addr() })
					if replicas > 0 { // the new primary has no replica to confirm
						time.Sleep(2 * time.Second)
						d.end()
						s = openURL(b, fmt.Sprintf("redis+sentinel://%s/%s", g.Addrs(), redistest.MasterName))
					} else {
						d.answers(10_000)
						d.end()
					}
					lost := d.admitted.Load() - used(b, s, op)
					b.Logf("%d admitted, %d lost, %d outages", d.admitted.Load(), lost, d.outages.Load())
					// Calls that were on their way to the old primary may be lost.
					if way.name == exchanged && lost > 200 {
						b.Errorf("lost: got %d hits, want no more than were on their way", lost)
					}
					if replicas > 0 && lost > 0 {
						b.Errorf("lost: got %d hits that a replica has confirmed, want none", lost)
					}
				}
			})
		}
	}
}
