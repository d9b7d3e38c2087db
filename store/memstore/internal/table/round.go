package table

import "math"

// forever is later than any instant at which a key expires.
const forever = math.MaxInt64

// round is a sweep's way around the items of a ring, again and again: the
// slots of a segment, or the directory of a table. It finds out on the way
// when the next key expires, so that a sweep can skip the ring until then.
//
// When the hand has been around, every key was passed or was noted since the
// round began, so pass becomes the new bound.
type round struct {
	hand int // the next item to look at

	// earliest is a bound for all keys. Invariant: none expires before it.
	earliest int64

	// pass is the same for the keys that the hand has passed in this round.
	pass int64
}

// newRound returns a round that has not begun, over keys of which none expires
// before earliest.
func newRound(earliest int64) round { return round{earliest: earliest, pass: forever} }

// note is called for a key that was put or changed anywhere in the ring.
func (r *round) note(expires int64) {
	r.earliest = min(r.earliest, expires)
	r.pass = min(r.pass, expires)
}

// passed is called for what stays behind the hand and expires no earlier than
// expires.
func (r *round) passed(expires int64) { r.pass = min(r.pass, expires) }

// missed is called when a key may have moved behind the hand without being
// looked at: the bound of this round is not known then.
func (r *round) missed() { r.pass = 0 }

// hurry makes the next sweep go around although no key may have expired.
func (r *round) hurry() { r.earliest = 0 }

// turn is called when the hand has been around. It begins the next round.
func (r *round) turn() { *r = newRound(r.pass) }
