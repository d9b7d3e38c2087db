package memstore

import (
	"github.com/weirhq/weir/internal/transition"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// opSlot is where the key of one op is, and what the op wants there. Its methods
// need the lock of its shard, but for isSingleHit. The package comment describes their order. It points to
// nothing of the op, so that a slot on the heap keeps no op alive and ops can be on the
// stack.
type opSlot struct {
	keyspace *keyspace
	shard    *shard
	key      table.Hash
	read     moment         // the call's reading of the clock
	now      window.Instant // its instant for the op
	hits     window.Hits
	index    int // of the op in the call

	// at is where find found the key, or where it would go. It is good until
	// the shard's table changes.
	at table.Ref

	// reserved is set when the keyspace has counted the key, which is not in
	// the table yet. Invariant: false when the shard is unlocked.
	reserved bool

	shared bool // another op of the call has the same shard
	locks  bool // the call has locked the stripe, and no earlier op has the same one
}

// lookup returns the keyspace, the shard and the hash of op's key. The shard is
// nil when there is none.
func (s *Store) lookup(op *store.Op) (*keyspace, *shard, table.Hash) {
	ks := s.keyspaces.existing(op.Space)
	if ks == nil {
		return nil, nil, 0
	}
	h := s.hash(op.Key)
	return ks, ks.shards[s.numberOf(h)].Load(), h
}

// hitsOf returns the hits of op.
func (s *Store) hitsOf(op *store.Op) (h window.Hits) {
	if h.N = max(op.N, 0); op.Limit.Measure == window.Distinct {
		h.Member = s.member(op.Member)
	}
	return
}

// dateAndFind dates the op with m, finds its key, and drops the answer of a hot key that v may
// change: a take of a hot key must not see a part of the call. It reports whether the key is
// new, so that it may have to be reserved. A check adds no key, but is refused by a
// full store as the take would be.
func (p *opSlot) dateAndFind(v store.Verb, op *store.Op, m moment) (isNew bool) {
	p.read, p.now = m, m.of(p.keyspace.onWall)
	if op.Hold != nil {
		op.Hold.Decided = p.now
	}
	p.find()
	if v != store.Check {
		p.shard.dropAnswer(p.key)
	}
	return !p.at.Known()
}

// find looks the key up.
func (p *opSlot) find() { p.at = p.shard.table.Find(p.key) }

// findAgain looks the key up where another op of the call may have changed the
// shard since find did.
func (p *opSlot) findAgain() {
	if p.shared {
		p.find()
	}
}

// reserve counts a key for an op that may add one. It reports false when the
// keyspace or the store is full. p.find has been called. others are stripes that the call has
// locked for other keyspaces.
func (p *opSlot) reserve(s *Store, do transition.Transition, op *store.Op, others numbers) bool {
	if p.hits.N == 0 {
		return true
	}
	if p.at.Known() {
		if p.shared {
			p.expire(&s.clock)
		}
		state := window.State(p.at.State())
		if s.memory.admits() < admitsNone || do != transition.Reserve && op.Limit.WordsAfter(do, state, p.hits) <= cap(state) {
			return true
		}
		s.full.Add(1)
		return false
	}
	ks, most := p.keyspace, op.Space.MaxKeys()
	p.reserved = s.memory.admitsNew(ks.chosen) && ks.addKey(most)
	if !p.reserved && p.reclaim(s.clock.expiry(p.read, ks), others) {
		p.shard.account(&s.memory)
		p.find()
		p.reserved = s.memory.admitsNew(ks.chosen) && ks.addKey(most)
	}
	if !p.reserved {
		s.full.Add(1)
	}
	return p.reserved
}

// expire drops the key where it has expired, and keeps its space reserved:
// otherwise another op of the call might reclaim the key, and use that
// space too.
func (p *opSlot) expire(c *clock) {
	e := c.expiry(p.read, p.keyspace)
	if !e.Over(p.at.State()) {
		return
	}
	p.shard.dropAnswer(p.key)
	p.shard.table.Remove(p.at, p.key)
	e.raise()
	p.find()
	p.reserved = true
}

// release gives back what was reserved and not used.
func (p *opSlot) release() {
	if p.reserved {
		p.keyspace.keys.Add(-1)
		p.reserved = false
	}
}
