package memstore

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/window"
)

// A moment is one reading of the clock, for both kinds of windows. Lengths of
// time are measured on a steady clock, which nobody can set; the calendar is
// read off the wall, and follows it when it is set.
type moment struct{ steady, wall window.Instant }

func (m moment) of(l *window.Limit) window.Instant {
	if onWall(l) {
		return m.wall
	}
	return m.steady
}

// onWall says whether l needs the time of day.
func onWall(l *window.Limit) bool {
	return l.Window.Kind == window.KindCalendar ||
		l.After.Count > 0 && l.After.Window.Kind == window.KindCalendar
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
	tell  func() moment
	given bool // by the caller; not the machine's

	steadyFloor, wallFloor atomic.Int64
}

// machine tells the time of the machine's clocks, both from one reading.
func machine() func() moment {
	start := time.Now()
	return func() moment {
		t := time.Now()
		return moment{steady: window.At(start).Add(t.Sub(start)), wall: window.At(t)}
	}
}

func (c *clock) read() moment { return c.floored(c.tell()) }

// floored is m, not before what has been forgotten by now.
func (c *clock) floored(m moment) moment {
	m.steady = max(m.steady, window.Instant(c.steadyFloor.Load()))
	m.wall = max(m.wall, window.Instant(c.wallFloor.Load()))
	return m
}

// horizon is the instant up to which keys of l must have expired to be
// reclaimed at m. A wall clock that was set far ahead reclaims nothing that
// the steady clock would keep: it may be set back again.
func (c *clock) horizon(m moment, l *window.Limit) window.Instant {
	switch {
	case c.given:
		return m.of(l).Add(-givenSlack)
	case onWall(l):
		return min(m.steady, m.wall).Add(-wallSlack)
	default:
		return m.steady
	}
}

// floor is the floor for instants of l.
func (c *clock) floor(l *window.Limit) *atomic.Int64 {
	if onWall(l) {
		return &c.wallFloor
	}
	return &c.steadyFloor
}

// expiry is how keys are reclaimed at one moment: those of the limit that
// expire at the horizon or before. Then the floor rises to the horizon.
type expiry struct {
	limit   *window.Limit
	horizon window.Instant
	floor   *atomic.Int64
}

func (c *clock) expiry(m moment, l *window.Limit) expiry {
	return expiry{l, c.horizon(m, l), c.floor(l)}
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
