// Package peer has the limiters that are measured: weir, other limiters for Go, and the raw costs that bound all of
// them. To add one, write an adapter and name it in a list below.
package peer

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// Config is the limit that a peer must enforce.
type Config struct {
	// Quota is the number of hits of one key to admit in Window.
	Quota  int64
	Window time.Duration

	Now     func() time.Time // nil is the machine's clock; only peers with Clock use it
	Redis   string           // host:port of the server, for peers that count in Redis
	Cluster bool             // the server is a cluster of one node

	Postgres string // URL of the database, for peers that count in PostgreSQL
}

// Limiter is a running peer, with the call to measure.
type Limiter struct {
	// Allow takes one hit of key and reports whether it is admitted. It is safe for concurrent use.
	Allow func(key string) bool

	// Close ends what the limiter started. It can be nil.
	Close func()
}

// Stop calls l.Close unless it is nil.
func (l Limiter) Stop() {
	if l.Close != nil {
		l.Close()
	}
}

// Kind is the kind of a peer.
type Kind uint8

// Limits is a limiter that admits and denies. Cost is a part that limiters are made of. Flows is a limiter that is
// set up to never deny.
const (
	Limits Kind = iota
	Cost
	Flows
)

// Peer is one row of the tables.
type Peer struct {
	Name   string // in the tables
	Module string // its path, for the version; empty for code of this package
	Note   string // its settings, if there was a choice
	Kind   Kind

	Keys      bool // it counts per key
	Clock     bool // its clock can be set
	Reference bool // the row that the ratios of its table refer to
	Hits      int  // per key when a table is filled; 0 means 1
	Several   int  // keys that a call decides; 0 means 1

	// NoTrace is the reason why the peer cannot be compared with an exact log.
	NoTrace string

	New func(Config) Limiter
}

// IsRaw reports whether p is a raw cost, which bounds the other rows.
func (p Peer) IsRaw() bool { return strings.HasPrefix(p.Name, "raw") }

// IsOurs reports whether p is weir's.
func (p Peer) IsOurs() bool {
	return strings.HasPrefix(p.Name, "weir") || strings.HasPrefix(p.Name, "library")
}

// HotKey is the key of the tables with one key: the first key of package measure.
const HotKey = "user:0000000000000000000"

// Hot returns the peers for one key: the raw costs, weir, and all others that count in memory.
func Hot() []Peer {
	return slices.Concat(rawCosts(), []Peer{rawXsync(true)}, baselines(1), weirHot(), inMemory())
}

// Million returns the peers that count many keys in memory.
func Million() []Peer {
	const size = 1 << 21 // no limiter can avoid the cache miss of a table as large as this
	seed, words := maphash.MakeSeed(), make([]atomic.Int64, size)
	raw := []Peer{
		{Name: "raw: hash the key, touch its memory", Kind: Cost, Keys: true, New: func(Config) Limiter {
			return Limiter{Allow: func(key string) bool { return words[maphash.String(seed, key)%size].Add(1) > 0 }}
		}},
		rawShards, rawXsync(false),
		{Name: "raw: sync.Map + time.Since + GCRA by CAS", Keys: true, New: func(c Config) Limiter {
			g := newGCRA(c)
			return each(func(string) *atomic.Int64 { return new(atomic.Int64) }, g.swap)
		}},
	}
	return slices.Concat(raw, baselines(1<<20), weirMillion(), only(inMemory(), func(p Peer) bool { return p.Keys }))
}

// Accuracy returns the limiters whose answers are compared with an exact log.
func Accuracy() []Peer {
	return only(append(weirAccuracy(), inMemory()...), func(p Peer) bool { return p.Kind == Limits && p.Keys && p.NoTrace == "" })
}

// ContendedHot returns the limiters that several cores call for one key.
func ContendedHot() []Peer { return slices.Concat([]Peer{rawXsync(true)}, weirHot(), contended()) }

// ContendedMillion returns the limiters that several cores call for many keys.
func ContendedMillion() []Peer {
	ours := only(weirMillion(), func(p Peer) bool { return p.Hits == 0 })
	return slices.Concat([]Peer{rawShards, rawXsync(false)}, ours, contended())
}

// Cold returns ContendedMillion after an empty call, none of them as a reference.
func Cold() []Peer {
	peers := append(rawCosts()[:1:1], ContendedMillion()...)
	for i := range peers {
		peers[i].Reference = false
	}
	return peers
}

// contended returns the other limiters whose gain from several cores is measured.
func contended() []Peer {
	names := []string{
		"x/time/rate in a sync.Map", "sethvargo/go-limiter", "throttled, map", "RussellLuo/slidingwindow in a sync.Map",
		"juju/ratelimit in a sync.Map", "failsafe-go bursty in a sync.Map",
	}
	return only(inMemory(), func(p Peer) bool { return slices.Contains(names, p.Name) })
}

// Modules returns the paths of all measured modules, some more than once.
func Modules() []string {
	modules := []string{"github.com/weirhq/weir", "github.com/puzpuzpuz/xsync/v4"}
	for _, p := range slices.Concat(Hot(), Redis(), Postgres()) {
		modules = append(modules, p.Module)
	}
	return modules
}

// only returns the peers for which keep returns true.
func only(peers []Peer, keep func(Peer) bool) []Peer {
	return slices.DeleteFunc(peers, func(p Peer) bool { return !keep(p) })
}

// each returns a limiter with one limiter per key in a sync.Map, as programs use a limiter without keys. It never removes
// one.
func each[T any](make func(key string) T, allow func(T) bool) Limiter {
	var limiters sync.Map
	return Limiter{Allow: func(key string) bool {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, make(key))
		}
		return allow(l.(T))
	}}
}

// gcra is the cheapest limiter: a bucket in one word. The word is the instant from which the whole burst fits, in
// nanoseconds since the creation of the limiter.
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

// rawXsync returns a GCRA by CAS on a word in an xsync map. For one key it is the reference of the ratios.
func rawXsync(reference bool) Peer {
	return Peer{Name: "raw: xsync lookup + time.Since + GCRA by CAS", Note: unbounded, Keys: true, Reference: reference, New: func(c Config) Limiter {
		g, words := newGCRA(c), xsync.NewMap[string, *atomic.Int64]()
		return Limiter{Allow: func(key string) bool {
			word, ok := words.Load(key)
			if !ok {
				word, _ = words.LoadOrStore(key, new(atomic.Int64))
			}
			return g.swap(word)
		}}
	}}
}

const unbounded = "forgets nothing, bounds nothing"

var rawShards = Peer{Name: "raw: 256 mutex + map shards, GCRA", Note: unbounded, Keys: true, Reference: true, New: func(c Config) Limiter {
	return Limiter{Allow: NewShards(c).Allow}
}}

// Shards is a map of buckets in 256 parts, each with a lock: the simplest way to count a million keys.
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

// rawCosts returns the parts that limiters are made of. Their answers are always true, after a comparison that
// keeps the compiler from removing the work.
func rawCosts() []Peer {
	var (
		start    = time.Now()
		add, cas atomic.Int64
		mu       sync.Mutex
		n        int
		plain    = map[string]*int{HotKey: new(int)}
		syncMap  sync.Map
		xsyncMap = xsync.NewMap[string, *int]()
	)
	syncMap.Store(HotKey, new(int))
	xsyncMap.Store(HotKey, new(int))
	cost := func(name string, allow func(string) bool) Peer {
		return Peer{Name: name, Kind: Cost, New: func(Config) Limiter { return Limiter{Allow: allow} }}
	}
	return []Peer{
		cost("raw: an empty call", func(string) bool { return true }),
		cost("raw: time.Now", func(string) bool { return !time.Now().IsZero() }),
		cost("raw: time.Since", func(string) bool { return time.Since(start) >= 0 }),
		cost("raw: atomic add", func(string) bool { return add.Add(1) > 0 }),
		cost("raw: CAS loop", func(string) bool {
			for {
				if old := cas.Load(); cas.CompareAndSwap(old, old+1) {
					return old >= 0
				}
			}
		}),
		cost("raw: mutex + increment", func(string) bool {
			mu.Lock()
			n++
			positive := n > 0
			mu.Unlock()
			return positive
		}),
		cost("raw: map lookup", func(key string) bool { return plain[key] != nil }),
		cost("raw: sync.Map lookup", func(key string) bool { _, ok := syncMap.Load(key); return ok }),
		cost("raw: xsync lookup", func(key string) bool { _, ok := xsyncMap.Load(key); return ok }),
	}
}
