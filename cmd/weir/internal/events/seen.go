package events

import (
	"hash/maphash"
	"sync/atomic"
)

// seenSets and seenWays bound what a seen remembers: 65,536 keys in 1 MiB.
const seenSets, seenWays = 1 << 14, 4

// seen remembers which keys of rules have had an event, until the ends of their windows. When a set of it is
// full, an entry makes room for another, so that its event can happen again, under the same id.
type seen struct {
	seed  maphash.Seed
	cells [seenSets * seenWays]struct {
		hash  atomic.Uint64
		until atomic.Int64 // in microseconds
	}
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed()} }

// first reports whether the event of a kind is the first one of a key since the end that an earlier call gave, and
// remembers it until the end that end returns. quota tells apart what happens before and after a change of the quota.
func (s *seen) first(kind Kind, namespace, rule, key string, quota, now int64, end func() int64) bool {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, text := range [...]string{string(kind), namespace, rule, key} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0)
	}
	hash := (h.Sum64() ^ uint64(quota)*0x9e3779b97f4a7c15) | 1
	set := s.cells[hash>>1%seenSets*seenWays:][:seenWays]
	free := int(hash >> 60 % seenWays) // unless one has ended
	for i := range set {
		c := &set[i]
		switch {
		case c.hash.Load() == hash:
			if was := c.until.Load(); now >= was {
				return c.until.CompareAndSwap(was, end())
			}
			return false
		case c.until.Load() <= now:
			free = i
		}
	}
	// Two calls at the same time may both be the first: they have one id.
	set[free].until.Store(end())
	set[free].hash.Store(hash)
	return true
}
