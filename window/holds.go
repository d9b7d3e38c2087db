package window

import "encoding/binary"

// idWords returns the first 64 bits of the id of a hold, and the other 32.
func idWords(id [12]byte) (high, low uint64) {
	return binary.BigEndian.Uint64(id[:8]), uint64(binary.BigEndian.Uint32(id[8:]))
}

// Hold describes hits that are counted and not final yet. It does not have their
// number.
type Hold struct {
	// ID identifies the hold under a key: 96 random bits, which the ops of one take
	// share. The zero ID identifies no hold.
	ID [12]byte

	// At is the instant of the take, and End the instant at which the hold ends
	// by itself. A hold is alive while now < End.
	At, End Instant
}

const (
	// defaultHolds is the default of Limit.MaxHolds.
	defaultHolds = 1000
	// mostHeld is the largest quota of a [Held] window.
	mostHeld int64 = 1 << 40
)

// All as the hits of [Compiled.Refund] gives back all hits of a key, and drops its
// strikes and its ban. Holds stay.
const All int64 = 1<<63 - 1

// holder is an algorithm that can hold. As with an algorithm, instants have
// passed [Compiled.instantFor], and a state may be empty.
type holder interface {
	algorithm

	// hold counts n hits, from 1 to MaxHits, as the hold h, whatever the quota.
	// It reports false, and changes nothing, when the state has the most holds.
	hold(s State, now Instant, n int64, h Hold) (State, bool)

	// end ends the hold id, of which n hits become final: all of them for
	// a negative n. It reports false, and changes nothing, when there is no such hold.
	end(s State, now Instant, id [12]byte, n int64) (State, bool)

	// renew moves the end of the hold id. It reports false, and changes nothing,
	// when there is no such hold.
	renew(s State, now Instant, id [12]byte, end Instant) (State, bool)

	// over reports whether a record of n hits at now passes the quota. held reports
	// whether they are held.
	over(s State, now Instant, n int64, held bool) bool

	// bare returns s with only the holds that are alive at now, without hits that
	// are final. It returns an empty state when no hold is alive.
	bare(s State, now Instant) State

	// has reports whether s has the hold id, alive at now.
	has(s State, now Instant, id [12]byte) bool

	// alive returns the number of holds at now, and holds returns them as [Reading.Holds] has them.
	alive(s State, now Instant) int
	holds(s State, now Instant) []Cell
}

// maxHolds returns the most holds that a key of l may have at the same time.
func (l *Limit) maxHolds() int {
	switch {
	case l.MaxHolds > 0:
		return l.MaxHolds
	case l.Window.Kind == KindHeld && l.Measure == Count:
		return max(defaultHolds, int(min(l.Quota, MaxEntries)))
	}
	return defaultHolds
}

// holdEnd returns the end of a hold of l that begins or is renewed at now.
func (l *Limit) holdEnd(now Instant) Instant { return min(now.Add(l.HoldLength()), lastInstant) }
