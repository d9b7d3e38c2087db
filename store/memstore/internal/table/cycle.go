package table

import "math"

// forever is later than any instant at which a key expires.
const forever = math.MaxInt64

// cycle is a sweep's way around the items of a ring, again and again: the
// slots of a segment, or the directory of a table. It finds out on the way
// when the next key expires, so that a sweep can skip the ring until then.
//
// When the hand has been around, every key was passed or touched since the
// cycle began, so pass becomes the new bound.
type cycle struct {
	hand int // the next item to look at

	// earliest is a bound for all keys. Invariant: none expires before it.
	earliest int64

	// pass is the same for the keys that the hand has passed in this cycle.
	pass int64
}

// newCycle returns a cycle that has not begun, over keys of which none expires
// before earliest.
func newCycle(earliest int64) cycle { return cycle{earliest: earliest, pass: forever} }

// touch records a key that was put or changed anywhere in the ring.
func (r *cycle) touch(expires int64) {
	r.earliest = min(r.earliest, expires)
	r.pass = min(r.pass, expires)
}

// skip records that the hand passes what expires no earlier than expires.
func (r *cycle) skip(expires int64) { r.pass = min(r.pass, expires) }

// invalidate records that a key may have moved behind the hand without being
// looked at: the bound of this cycle is not known then.
func (r *cycle) invalidate() { r.pass = 0 }

// force makes the next sweep go around although no key may have expired.
func (r *cycle) force() { r.earliest = 0 }

// next begins the next cycle, when the hand has been around.
func (r *cycle) next() { *r = newCycle(r.pass) }
