package peer

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// gcra is the cheapest limiter: a bucket in one word. The word is the instant from
// which the whole burst fits, in nanoseconds since the creation of the limiter.
type gcra struct {
	start           time.Time
	interval, burst int64
}

func newGCRA(c Config) gcra {
	return gcra{start: time.Now(), interval: int64(c.Window) / c.Quota, burst: int64(c.Window)}
}

func (g *gcra) now() int64 { return int64(time.Since(g.start)) }

// next returns the word after a hit at now, and reports whether the hit fits.
func (g *gcra) next(full, now int64) (int64, bool) {
	full = max(full, now) + g.interval
	return full, full-now <= g.burst
}

// swap takes a hit from a word that several goroutines share.
func (g *gcra) swap(word *atomic.Int64) bool {
	now := g.now()
	for {
		old := word.Load()
		full, fits := g.next(old, now)
		if !fits || word.CompareAndSwap(old, full) {
			return fits
		}
	}
}

// rawXsync returns a GCRA by CAS on a word in an xsync map. For one key it is the
// reference of the ratios.
func rawXsync(reference bool) Peer {
	return Peer{
		Name: "raw: xsync lookup + time.Since + GCRA by CAS", Keys: true, Reference: reference,
		Note: "forgets nothing, bounds nothing",
		New: func(c Config) (Limiter, error) {
			g, words := newGCRA(c), xsync.NewMap[string, *atomic.Int64]()
			return Limiter{Allow: func(key string) bool {
				word, ok := words.Load(key)
				if !ok {
					word, _ = words.LoadOrStore(key, new(atomic.Int64))
				}
				return g.swap(word)
			}}, nil
		},
	}
}

func rawSyncMap() Peer {
	return Peer{
		Name: "raw: sync.Map + time.Since + GCRA by CAS", Keys: true,
		New: func(c Config) (Limiter, error) {
			g := newGCRA(c)
			return each(func() *atomic.Int64 { return new(atomic.Int64) }, g.swap), nil
		},
	}
}

// Shards is a map of buckets in 256 parts, each with a lock: the simplest way to
// count a million keys.
type Shards struct {
	gcra
	seed  maphash.Seed
	parts [256]struct {
		mu    sync.Mutex
		words map[string]int64 // guarded by mu
		_     [48]byte         // keeps each part on its own cache line
	}
}

// NewShards returns an empty map of buckets.
func NewShards(c Config) *Shards {
	s := &Shards{gcra: newGCRA(c), seed: maphash.MakeSeed()}
	for i := range s.parts {
		s.parts[i].words = make(map[string]int64)
	}
	return s
}

// Allow takes one hit of key.
func (s *Shards) Allow(key string) bool {
	part := &s.parts[maphash.String(s.seed, key)>>56]
	now := s.now()
	part.mu.Lock()
	defer part.mu.Unlock()
	full, fits := s.next(part.words[key], now)
	if fits {
		part.words[key] = full
	}
	return fits
}

// Sweep removes the buckets from part i of 256 that expire within d from now.
func (s *Shards) Sweep(i int, d time.Duration) {
	part := &s.parts[i%len(s.parts)]
	now := s.now() + int64(d)
	part.mu.Lock()
	defer part.mu.Unlock()
	for key, full := range part.words {
		if full <= now {
			delete(part.words, key)
		}
	}
}

// Len returns the number of keys.
func (s *Shards) Len() (n int) {
	for i := range s.parts {
		s.parts[i].mu.Lock()
		n += len(s.parts[i].words)
		s.parts[i].mu.Unlock()
	}
	return n
}

func rawShards() Peer {
	return Peer{
		Name: "raw: 256 mutex + map shards, GCRA", Keys: true, Reference: true,
		Note: "forgets nothing, bounds nothing",
		New: func(c Config) (Limiter, error) {
			return Limiter{Allow: NewShards(c).Allow}, nil
		},
	}
}
