package script

import (
	"maps"
	"sync/atomic"

	"github.com/weirhq/weir/window"
)

// periods are the calendar periods before, around and after an instant: the
// start of the first and the ends of all three. A server whose clock is near
// finds its own period among them.
type periods [4]window.Instant

// calendars holds the periods of each window, because finding them costs as
// much as the rest of a call. The zero value is ready; it is safe for concurrent
// use.
type calendars struct {
	known atomic.Pointer[map[window.Window]periods] // never changed, but replaced
}

// mostCalendars is how many windows are kept: more than rules have.
const mostCalendars = 1000

// around returns the periods of w around near.
func (c *calendars) around(w window.Window, near window.Instant) periods {
	known := c.known.Load()
	if known != nil {
		if p, ok := (*known)[w]; ok && p[1] <= near && near < p[2] {
			return p
		}
	}
	start, end := w.PeriodBounds(near)
	before, _ := w.PeriodBounds(start - 1)
	_, after := w.PeriodBounds(end)
	p := periods{max(before, 0), max(start, 0), end, after}
	next := map[window.Window]periods{}
	if known != nil && len(*known) < mostCalendars {
		next = maps.Clone(*known)
	}
	next[w] = p
	c.known.CompareAndSwap(known, &next) // a lost race costs the next call the same again
	return p
}
