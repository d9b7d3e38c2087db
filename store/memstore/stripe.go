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

	// latest is the latest reading of the steady clock by which a call here
	// was dated, or unknown. Invariant on the machine's clock: no hit here is
	// dated after both it and the clock's floor, but for those of states that
	// are lent.
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

// unknown is later than every reading: the next call reads the clock again.
const unknown = window.Instant(1<<63 - 1)

// lock locks st for a call.
func (st *stripe) lock() {
	st.mu.Lock()
	st.calls++
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

// numbersOf returns the numbers of the stripes of places.
func (s *Store) numbersOf(places []place) (all numbers) {
	for i := range places {
		all.add(s.numberOf(places[i].key))
	}
	return all
}

// lockAll locks the stripes of places for a call, each once, in the order of their numbers.
// All calls do, so calls do not wait for each other in a circle. latest is the latest one
// of their latest.
func (s *Store) lockAll(places []place) (latest window.Instant) {
	latest = math.MinInt64
	for i, word := range s.numbersOf(places) {
		for ; word != 0; word &= word - 1 {
			st := s.keyspaces.stripes[64*i+bits.TrailingZeros64(word)].Load()
			st.lock()
			latest = max(latest, st.latest)
		}
	}
	return latest
}

// unlockAll unlocks what lockAll has locked.
func (s *Store) unlockAll(places []place) {
	for i, word := range s.numbersOf(places) {
		for ; word != 0; word &= word - 1 {
			s.keyspaces.stripes[64*i+bits.TrailingZeros64(word)].Load().mu.Unlock()
		}
	}
}
