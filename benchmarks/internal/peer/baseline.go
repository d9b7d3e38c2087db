package peer

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"time"
)

// baseline is the least that a limiter with the answers of a Limiter has to do for a call: it reads the clock, hashes
// the key, locks one of 32 parts, finds the slot of the key, counts, and answers with all numbers. It has one kind of
// call, neither errors nor contexts, does not grow, and forgets nothing.
type baseline struct {
	seed  maphash.Seed
	start time.Time
	quota int64
	width int64 // of the window, in microseconds
	log   bool  // exact sliding windows of at most 100 hits; else GCRA
	parts [32]baselinePart
}

type baselinePart struct {
	mu    sync.Mutex
	slots []baselineSlot
	logs  []int64 // longer than two instants, each with room for the quota
	_     [8]byte // a cache line for each part
}

// baselineSlot is a key: its hash, and the instant from which the whole burst of a bucket fits, or one or two instants of
// a log. The instants of a longer log are at a place in logs.
type baselineSlot struct {
	hash     uint64
	len      int32 // instants
	place    int32 // in units of the quota, from 1 on; 0: in the slot
	instants [2]int64
}

// baselineAnswer is what a limiter says about a key.
type baselineAnswer struct {
	allowed                                          bool
	quota, used, before, remaining, retryIn, resetIn int64
}

// baselines returns the baselines with room for a number of keys: a bucket, and an exact log of instants.
func baselines(keys int) []Peer {
	bucket := Peer{
		Name: "raw: baseline, bucket", Kind: Cost, Keys: true,
		Note: "clock, hash, lock, a slot in a table, all numbers in the answer; does not grow and forgets nothing",
		New:  func(c Config) Limiter { return newBaseline(c, false, keys).limiter() },
	}
	log := Peer{
		Name: "raw: baseline, log of 100 instants", Kind: Cost, Keys: true, Note: "the same limit as weir sliding, exact",
		New: func(c Config) Limiter { return newBaseline(exact(c), true, keys).limiter() },
	}
	return []Peer{bucket, log}
}

func newBaseline(c Config, log bool, keys int) *baseline {
	b := &baseline{seed: maphash.MakeSeed(), start: time.Now(), quota: c.Quota, width: c.Window.Microseconds(), log: log}
	for i := range b.parts {
		b.parts[i].slots = make([]baselineSlot, keys*5/4/len(b.parts)+2)
	}
	return b
}

func (b *baseline) limiter() Limiter {
	return Limiter{Allow: func(key string) bool { return b.take(key).allowed }}
}

// take takes one hit of key.
func (b *baseline) take(key string) (a baselineAnswer) {
	h := maphash.String(b.seed, key)
	p := &b.parts[h>>59]
	now := int64(time.Since(b.start) / time.Microsecond)
	p.mu.Lock()
	at, _ := bits.Mul64(h<<5, uint64(len(p.slots)))
	for p.slots[at].hash != h && p.slots[at].hash != 0 {
		if at++; at == uint64(len(p.slots)) {
			at = 0
		}
	}
	s := &p.slots[at]
	s.hash = h
	if a.quota = b.quota; b.log {
		b.takeLog(p, s, now, &a)
	} else {
		b.takeBucket(s, now, &a)
	}
	p.mu.Unlock()
	return a
}

// takeBucket takes from a bucket, whose quota drains in the window.
func (b *baseline) takeBucket(s *baselineSlot, now int64, a *baselineAnswer) {
	interval, ahead := b.width/b.quota, max(s.instants[0]-now, 0)
	a.before = ahead * b.quota / b.width
	if a.allowed = ahead+interval <= b.width; a.allowed {
		ahead += interval
		s.instants[0] = now + ahead
		a.used = a.before + 1
	} else {
		a.used, a.retryIn = a.before, ahead+interval-b.width
	}
	a.remaining, a.resetIn = b.quota-a.used, ahead
}

// takeLog takes from a log of instants.
func (b *baseline) takeLog(p *baselinePart, s *baselineSlot, now int64, a *baselineAnswer) {
	n, log := int64(s.len), s.instants[:]
	if s.place > 0 {
		log = p.logs[int64(s.place-1)*b.quota:][:b.quota]
	}
	left := int64(0)
	for left < n && log[left] <= now-b.width {
		left++
	}
	if n -= left; left > 0 {
		copy(log[:n], log[left:])
	}
	a.before = n
	if a.allowed = n < b.quota; a.allowed {
		if n == int64(len(log)) {
			p.logs = append(p.logs, make([]int64, b.quota)...)
			s.place = int32(int64(len(p.logs)) / b.quota)
			log = p.logs[int64(len(p.logs))-b.quota:]
			copy(log, s.instants[:])
		}
		log[n] = now
		n++
	} else {
		a.retryIn = log[0] + b.width - now
	}
	s.len = int32(n)
	a.used, a.remaining, a.resetIn = n, b.quota-n, log[n-1]+b.width-now
}
