package memstore_test

import (
	"context"
	"hash/maphash"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// ring is the least that an exact sliding window under a lock has to do: it keeps
// the instants of the last hits. It has one key, no expiry and no bound.
type ring struct {
	mu     sync.Mutex
	dates  [100]int64
	oldest int
	used   int
}

func (g *ring) take(now, length int64) (r window.Result) {
	g.mu.Lock()
	for g.used > 0 && g.dates[g.oldest] <= now-length {
		g.used--
		if g.oldest++; g.oldest == len(g.dates) {
			g.oldest = 0
		}
	}
	r.Before, r.Quota = int64(g.used), int64(len(g.dates))
	if g.used < len(g.dates) {
		at := g.oldest + g.used
		if at >= len(g.dates) {
			at -= len(g.dates)
		}
		g.dates[at] = now
		g.used++
		r.Allowed, r.ResetAfter = true, time.Duration(length)
	} else {
		r.RetryAfter = time.Duration(g.dates[g.oldest] + length - now)
	}
	r.Used = int64(g.used)
	r.Remaining = r.Quota - r.Used
	g.mu.Unlock()
	return r
}

// BenchmarkBaseline compares a take of one hot key in a sliding window with the least
// that an exact one needs: hash, lookup, clock, lock, one instant, the answer. Run
// it with -cpu 1,2: the second core shows what a lock allows.
func BenchmarkBaseline(b *testing.B) {
	const key, length = "user:0000000000000000000", 5 * time.Microsecond
	b.Run("ring", func(b *testing.B) {
		seed, start := maphash.MakeSeed(), time.Now()
		rings := map[uint64]*ring{maphash.String(seed, key): {}}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				g := rings[maphash.String(seed, key)]
				if r := g.take(int64(time.Since(start)), int64(length)); r.Used == 0 {
					b.Error("got no hit")
				}
			}
		})
	})
	b.Run("weir", func(b *testing.B) {
		s := memstore.New()
		l := window.MustCompile(window.Limit{Quota: 100, Window: window.Sliding(length)})
		space := store.NewSpace("", "s", "", 0)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if r, err := one(context.Background(), s, store.Take, space, l, key, "", 1); err != nil || r.Used == 0 {
					b.Error(r, err)
				}
			}
		})
	})
}
