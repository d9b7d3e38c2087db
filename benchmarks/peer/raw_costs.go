package peer

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// rawCosts returns the parts that limiters are made of. Their answers are always
// true, after a comparison that keeps the compiler from removing the work.
func rawCosts() []Peer {
	return []Peer{
		cost("raw: an empty call", func() func(string) bool {
			return func(string) bool { return true }
		}),
		cost("raw: time.Now", func() func(string) bool {
			return func(string) bool { return !time.Now().IsZero() }
		}),
		cost("raw: time.Since", func() func(string) bool {
			start := time.Now()
			return func(string) bool { return time.Since(start) >= 0 }
		}),
		cost("raw: atomic add", func() func(string) bool {
			n := new(atomic.Int64)
			return func(string) bool { return n.Add(1) > 0 }
		}),
		cost("raw: CAS loop", func() func(string) bool {
			n := new(atomic.Int64)
			return func(string) bool {
				for {
					if old := n.Load(); n.CompareAndSwap(old, old+1) {
						return old >= 0
					}
				}
			}
		}),
		cost("raw: mutex + increment", func() func(string) bool {
			var mu sync.Mutex
			n := 0
			return func(string) bool {
				mu.Lock()
				n++
				positive := n > 0
				mu.Unlock()
				return positive
			}
		}),
		cost("raw: map lookup", func() func(string) bool {
			m := map[string]*int{HotKey: new(int)}
			return func(key string) bool { return m[key] != nil }
		}),
		cost("raw: sync.Map lookup", func() func(string) bool {
			var m sync.Map
			m.Store(HotKey, new(int))
			return func(key string) bool { _, ok := m.Load(key); return ok }
		}),
		cost("raw: xsync lookup", func() func(string) bool {
			m := xsync.NewMap[string, *int]()
			m.Store(HotKey, new(int))
			return func(key string) bool { _, ok := m.Load(key); return ok }
		}),
	}
}

// HotKey is the key of the tables with one key: the first key of package measure.
const HotKey = "user:0000000000000000000"

func cost(name string, make func() func(string) bool) Peer {
	return Peer{Name: name, Kind: Cost, New: func(Config) (Limiter, error) {
		return Limiter{Allow: make()}, nil
	}}
}

// rawTouch hashes the key and writes one word of a table as large as a limiter's.
// No limiter can avoid this cache miss.
func rawTouch() Peer {
	return Peer{Name: "raw: hash the key, touch its memory", Kind: Cost, Keys: true, New: func(Config) (Limiter, error) {
		const size = 1 << 21
		seed, words := maphash.MakeSeed(), make([]atomic.Int64, size)
		return Limiter{Allow: func(key string) bool {
			return words[maphash.String(seed, key)%size].Add(1) > 0
		}}, nil
	}}
}
