package memstore

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// moment is one reading of the clock, for both kinds of windows. Lengths of
// time are measured on the steady clock, which cannot be set. Calendar windows
// follow the wall clock, also when it is set. Calls that need no calendar do
// not read the wall clock, which is half of what a reading costs; wall is 0
// then.
type moment struct{ steady, wall window.Instant }

func (m moment) of(onWall bool) window.Instant {
	if onWall {
		return m.wall
	}
	return m.steady
}

const (
	// wallSlack is how long keys of calendar windows outlive their period, so
	// that they are found when the wall clock is set back by a small step.
	wallSlack = time.Minute
	// mostBack is how far the wall clock may be set back at most for the floor of the keys of
	// calendar windows to hold.
	mostBack = 24 * time.Hour
	// customSlack is how long all keys outlive their expiry with a clock that
	// the caller gives: entries of logs are out of order by as long as a
	// request takes.
	customSlack = time.Hour
)

// clock tells the time. A reclaimed key has forgotten when it was used, so from
// then on no call is dated before the instant at which the key expired: the
// floor. Time that runs backwards frees no quota.
type clock struct {
	start  time.Time      // a reading of the machine's clocks
	base   window.Instant // what the steady clock showed then
	source func() moment  // read instead of them, if not nil
	custom bool           // source is the caller's, and may go back

	// Invariant: no key that was reclaimed expired after the floor, but for keys of calendar
	// windows while the wall clock was wrong by more than mostBack. The floor is raised under
	// the lock of the shard that the key was in.
	steadyFloor, wallFloor atomic.Int64
}

// begin sets the steady clock to the time of day at start.
func (c *clock) begin(start time.Time) { c.start, c.base = start, window.At(start) }

// now reads the clock, with the time of day if asked for. Both are from one
// reading.
func (c *clock) now(onWall bool) moment {
	switch {
	case c.source != nil:
		return c.source()
	case onWall:
		t := time.Now()
		return moment{steady: c.base.Add(t.Sub(c.start)), wall: window.At(t)}
	default:
		return moment{steady: c.base.Add(time.Since(c.start))}
	}
}

// again reads the clock again for a call that read m, and found that calls
// with later readings have been decided since. A clock that the caller gives
// may go back: its reading stands. It is rarely called, and not inlined so that
// stripe.date is.
//
//go:noinline
func (c *clock) again(m moment, onWall bool) moment {
	if c.custom {
		return m
	}
	return c.now(onWall)
}

// read reads the clock, with the time of day, for sweeps. If the wall clock was set back by more
// than mostBack, it was wrong before, and read sets the floor back, too: otherwise time would stand
// still in all calendar windows until the clock has caught up.
func (c *clock) read() moment {
	m := c.now(true)
	if floor := c.wallFloor.Load(); !c.custom && window.Instant(floor).Sub(m.wall) > mostBack {
		c.wallFloor.CompareAndSwap(floor, int64(m.wall))
	}
	return c.floored(m)
}

// floored returns m, or the floor where that is later.
func (c *clock) floored(m moment) moment {
	m.steady = max(m.steady, window.Instant(c.steadyFloor.Load()))
	m.wall = max(m.wall, window.Instant(c.wallFloor.Load()))
	return m
}

// horizon returns the instant up to which keys have to expire to be reclaimed
// at m. When the wall clock was set far ahead, keys stay as long as the steady
// clock keeps them, because the wall clock may be set back again.
func (c *clock) horizon(m moment, onWall bool) window.Instant {
	switch {
	case c.custom:
		return m.of(onWall).Add(-customSlack)
	case onWall:
		return min(m.steady, m.wall).Add(-wallSlack)
	default:
		return m.steady
	}
}

// expiry is how keys are reclaimed at one moment.
type expiry struct {
	table.Expiry
	floor *atomic.Int64
}

// expiry returns how the keys of ks are reclaimed at m.
func (c *clock) expiry(m moment, ks *keyspace) expiry {
	e := expiry{
		table.Expiry{Lives: (*lives)(ks.limit.Load()), Horizon: int64(c.horizon(m, ks.onWall))},
		&c.steadyFloor,
	}
	if ks.onWall {
		e.floor = &c.wallFloor
	}
	return e
}

// raise raises the floor to the horizon. It is called when keys were reclaimed,
// before their shard is unlocked.
func (e expiry) raise() {
	for {
		old := e.floor.Load()
		if old >= e.Horizon || e.floor.CompareAndSwap(old, e.Horizon) {
			return
		}
	}
}

// lives is a limit that tells a table how long its keys live.
type lives window.Compiled

// Expires implements [table.Lives].
func (l *lives) Expires(state []uint64) int64 { return int64((*window.Compiled)(l).Expires(state)) }
