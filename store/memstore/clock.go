package memstore

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/window"
)

// A moment is one reading of the clock, for both kinds of windows. Lengths of
// time are measured on a steady clock, which nobody can set; the calendar is
// read off the wall, and follows it when it is set. Calls that need no calendar
// do not read the wall, which is half of what a reading costs; it is 0 then.
type moment struct{ steady, wall window.Instant }

func (m moment) of(onWall bool) window.Instant {
	if onWall {
		return m.wall
	}
	return m.steady
}

const (
	// wallSlack is how long keys of calendar windows outlive their period, so
	// that the small steps by which a wall clock is set back find them.
	wallSlack = time.Minute
	// givenSlack is the same for a clock that the caller gives: logs are out
	// of order by as long as a request takes.
	givenSlack = time.Hour
)

// clock tells the time. A key that was reclaimed is forgotten with the latest
// instant it has seen, so from then on the clock never tells an instant before
// the key's expiry: the floor. Time that runs backwards cannot free quota.
type clock struct {
	start time.Time     // of the machine's clocks
	tell  func() moment // asked instead of them, if not nil
	given bool          // by the caller, who may go back in time

	steadyFloor, wallFloor atomic.Int64
}

// read tells the time, with that of day if asked for: both from one reading.
func (c *clock) read(onWall bool) moment {
	switch {
	case c.tell != nil:
		return c.floored(c.tell())
	case onWall:
		t := time.Now()
		return c.floored(moment{steady: window.At(c.start).Add(t.Sub(c.start)), wall: window.At(t)})
	default:
		return c.floored(moment{steady: window.At(c.start).Add(time.Since(c.start))})
	}
}

// floored is m, not before what has been forgotten by now.
func (c *clock) floored(m moment) moment {
	m.steady = max(m.steady, window.Instant(c.steadyFloor.Load()))
	m.wall = max(m.wall, window.Instant(c.wallFloor.Load()))
	return m
}

// horizon is the instant up to which keys must have expired to be reclaimed at
// m. A wall clock that was set far ahead reclaims nothing that the steady clock
// would keep: it may be set back again.
func (c *clock) horizon(m moment, onWall bool) window.Instant {
	switch {
	case c.given:
		return m.of(onWall).Add(-givenSlack)
	case onWall:
		return min(m.steady, m.wall).Add(-wallSlack)
	default:
		return m.steady
	}
}

// floor is the floor for instants on the wall, or the steady ones.
func (c *clock) floor(onWall bool) *atomic.Int64 {
	if onWall {
		return &c.wallFloor
	}
	return &c.steadyFloor
}

// expiry is how keys are reclaimed at one moment: those of the limit that
// expire at the horizon or before. Then the floor rises to the horizon.
type expiry struct {
	limit   *window.Compiled
	horizon window.Instant
	floor   *atomic.Int64
}

// expiry is how the keys of t are reclaimed at m.
func (c *clock) expiry(m moment, t *table) expiry {
	return expiry{t.limit.Load(), c.horizon(m, t.onWall), c.floor(t.onWall)}
}

func (e expiry) of(s window.State) (at window.Instant, over bool) {
	at = e.limit.Expires(s)
	return at, at <= e.horizon
}

// raise is called when keys were reclaimed.
func (e expiry) raise() {
	for {
		old := e.floor.Load()
		if old >= int64(e.horizon) || e.floor.CompareAndSwap(old, int64(e.horizon)) {
			return
		}
	}
}
