package window

import (
	"encoding/binary"
	"time"
)

// HoldID identifies a hold under a key: 96 random bits, which the ops of one take
// share. The zero HoldID identifies no hold.
type HoldID [12]byte

// words returns the first 64 bits of id, and the other 32.
func (id HoldID) words() (high, low uint64) {
	return binary.BigEndian.Uint64(id[:8]), uint64(binary.BigEndian.Uint32(id[8:]))
}

// Hold describes hits that are counted and not final yet. It does not have their
// number.
type Hold struct {
	ID HoldID

	// At is the instant of the take, and End the instant at which the hold ends
	// by itself. A hold is alive while now < End.
	At, End Instant
}

// Unsettled states what counts after a hold has ended by itself, without a settle.
type Unsettled uint8

const (
	Keep    Unsettled = iota // all hits that were held, as if they had been settled
	Release                  // nothing
)

var unsettledNames = [...]string{"keep", "release"}

// String returns the value as rules files write it: keep or release.
func (u Unsettled) String() string { return name(unsettledNames[:], int(u)) }

const (
	// defaultHolds is the default of Limit.MaxHolds.
	defaultHolds = 1000
	// MostHolds is the largest Limit.MaxHolds. It bounds the state of a key.
	MostHolds = 10_000
	// MostHeld is the largest quota of a [Held] window.
	MostHeld int64 = 1 << 40
)

// AsHeld as the amount of a settle means the number of hits that the hold has.
const AsHeld int64 = -1

// All as the hits of [Compiled.Refund] gives back all hits of a key, and drops its
// strikes and its ban. Holds stay.
const All int64 = 1<<63 - 1

// holder is an algorithm that can hold. As with an algorithm, instants have
// passed [Compiled.clock], and a state may be empty.
type holder interface {
	algorithm

	// hold counts n hits, from 1 to MaxHits, as the hold h, whatever the quota.
	// It reports false, and changes nothing, when the state has the most holds.
	hold(s State, now Instant, n int64, h Hold) (State, bool)

	// end ends the hold id, of which n hits become final: all of them for
	// AsHeld. It reports false, and changes nothing, when there is no such hold.
	end(s State, now Instant, id HoldID, n int64) (State, bool)

	// renew moves the end of the hold id. It reports false, and changes nothing,
	// when there is no such hold.
	renew(s State, now Instant, id HoldID, end Instant) (State, bool)

	// over reports whether a record of n hits at now passes the quota. held reports
	// whether they are held.
	over(s State, now Instant, n int64, held bool) bool

	// bare returns s with only the holds that are alive at now, without hits that
	// are final. It returns an empty state when no hold is alive.
	bare(s State, now Instant) State

	// has reports whether s has the hold id, which may have ended.
	has(s State, id HoldID) bool

	// alive returns the number of holds at now.
	alive(s State, now Instant) int
}

// maxHolds returns the most holds that a key of l may have at the same time.
func (l *Limit) maxHolds() int {
	switch {
	case l.MaxHolds > 0:
		return l.MaxHolds
	case l.Window.Kind == KindHeld && l.Measure == Count:
		return max(defaultHolds, int(min(l.Quota, MostHolds)))
	}
	return defaultHolds
}

// holdLength returns how long a hold of l lasts without being renewed.
func (l *Limit) holdLength() Instant {
	if l.Window.Kind == KindHeld {
		return Instant(l.Window.micros())
	}
	return Instant(l.Hold.Microseconds())
}

// Holds reports whether takes under l can hold: l has [Limit.Hold], or its window
// is [Held].
func (l *Compiled) Holds() bool { return l.limit.Hold > 0 || l.limit.Window.Kind == KindHeld }

// HoldLength returns how long a hold of l lasts without being renewed, and 0 when
// takes under l do not hold.
func (l *Compiled) HoldLength() time.Duration {
	if !l.Holds() {
		return 0
	}
	return l.limit.holdLength().length()
}
