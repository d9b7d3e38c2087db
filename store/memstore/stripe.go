package memstore

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// stripe is the lock of the shards with one number, of which each keyspace has one. The
// hash of a key selects the number in every keyspace, so a call with several ops for one
// key locks once.
//
// It has two cache lines. Every call that locks it writes the first one. TestLines holds
// the layout to that.
type stripe struct {
	mu sync.Mutex

	// All below is guarded by mu, and so are the stripe's shards.

	// latest is the latest reading of the steady clock by which a call here was
	// dated. Invariant on the machine's clock: no hit here is dated after both it
	// and the clock's floor.
	latest window.Instant

	calls uint64 // that have locked the stripe

	large window.State // to work on states that are too large for scratch
	_     [16]byte

	scratch [8]uint64 // to work on small states where their block is too small
}

// stripes are the stripes of a store, by their numbers. A stripe is made for the
// first shard that needs it, and nil until then.
type stripes []atomic.Pointer[stripe]

// of returns the stripe with the given number. It makes the stripe if need be.
func (all stripes) of(number int) *stripe {
	if all[number].Load() == nil {
		all[number].CompareAndSwap(nil, new(stripe))
	}
	return all[number].Load()
}

// lock locks st for a call.
func (st *stripe) lock() {
	st.mu.Lock()
	st.calls++
}

// copyOf returns a copy of a state with a capacity of at least room words, which is good
// until the next one is made. st is locked.
func (st *stripe) copyOf(state window.State, room int) window.State {
	if room <= len(st.scratch) {
		return append(st.scratch[:0], state...)
	}
	if cap(st.large) < room {
		st.large = make(window.State, 0, room+room/4)
	}
	st.large = append(st.large[:0], state...)
	return st.large
}

// date returns the reading of the clock that a call is dated with: m, which it
// read before it locked st, or a new one when a call with a later reading has
// been decided here since.
func (st *stripe) date(c *clock, m moment, onWall bool) moment {
	if m.steady < st.latest {
		m = c.again(m, onWall)
	}
	st.latest = m.steady
	return m
}

// numberOf returns the number of the stripe and of the shards to which the key h
// belongs.
func (s *Store) numberOf(h table.Hash) int { return numberOf(h, len(s.keyspaces.stripes)) }

// numberOf returns which of n shards the key h belongs to. n is a power of two
// up to 256.
func numberOf(h table.Hash, n int) int { return int(uint64(h>>56) * uint64(n) >> 8) }

// numbers are the numbers of stripes: a bit for each.
type numbers [4]uint64

// add adds the stripe with the given number.
func (n *numbers) add(number int) { n[number>>6&3] |= 1 << (number & 63) }

// remove removes the stripe with the given number.
func (n *numbers) remove(number int) { n[number>>6&3] &^= 1 << (number & 63) }

// has reports whether n has the stripe with the given number.
func (n *numbers) has(number int) bool { return n[number>>6&3]&(1<<(number&63)) != 0 }

// numbersOf returns the numbers of the stripes of slots.
func (s *Store) numbersOf(slots []opSlot) (all numbers) {
	for i := range slots {
		all.add(s.numberOf(slots[i].key))
	}
	return all
}

// mostTried is the most ops whose stripes are locked in the order of the ops.
const mostTried = 16

// lockAll locks the stripes of slots for a call, each once, and marks the first slot of
// each. latest is the latest one of their latest.
//
// It waits for the first stripe only, and tries the locks of the others, so calls do not
// wait for each other in a circle. If one of them is taken, it begins again in the order of
// their numbers. Calls seldom meet, so that few calls have to order their stripes.
func (s *Store) lockAll(slots []opSlot) (latest window.Instant) {
	if len(slots) > mostTried {
		return s.lockInOrder(slots)
	}
	latest = math.MinInt64
	for i := range slots {
		p := &slots[i]
		st := p.shard.stripe
		switch {
		case i == 0:
			st.mu.Lock()
		case st == slots[i-1].shard.stripe:
			continue
		case st.mu.TryLock():
		case locked(slots[:i], st):
			continue
		default:
			unlockAll(slots[:i])
			return s.lockInOrder(slots)
		}
		p.locks = true
		st.calls++
		latest = max(latest, st.latest)
	}
	return latest
}

// locked reports whether st is the stripe of one of slots.
func locked(slots []opSlot, st *stripe) bool {
	for i := range slots {
		if slots[i].shard.stripe == st {
			return true
		}
	}
	return false
}

// lockInOrder locks the stripes of slots in the order of their numbers, as all calls do that
// wait for a stripe while they have locked one, so that none wait for each other in a circle.
func (s *Store) lockInOrder(slots []opSlot) (latest window.Instant) {
	latest = math.MinInt64
	all := s.numbersOf(slots)
	for i, word := range all {
		for ; word != 0; word &= word - 1 {
			st := s.keyspaces.stripes[64*i+bits.TrailingZeros64(word)].Load()
			st.lock()
			latest = max(latest, st.latest)
		}
	}
	for i := range slots {
		p := &slots[i]
		number := s.numberOf(p.key)
		p.locks = all.has(number)
		all.remove(number)
	}
	return latest
}

// unlockAll unlocks what was locked for slots.
func unlockAll(slots []opSlot) {
	for i := range slots {
		if p := &slots[i]; p.locks {
			p.locks = false
			p.shard.stripe.mu.Unlock()
		}
	}
}
