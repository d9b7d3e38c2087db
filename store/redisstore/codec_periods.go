package redisstore

import (
	"maps"
	"sync/atomic"

	"github.com/weirhq/weir/window"
)

// periods are the calendar periods before, around and after an instant: the
// start of the first and the ends of all three. A server whose clock is near
// finds its own among them.
type periods [4]window.Instant

// calendars remember the periods of each window, because finding them costs as
// much as a call does otherwise. The zero value is ready; it is safe for
// concurrent use.
type calendars struct {
	known atomic.Pointer[map[window.Window]periods] // never changed, but replaced
}

// mostCalendars is how many windows are remembered: more than rules have.
const mostCalendars = 1000

// around are the periods of w around near.
func (c *calendars) around(w *window.Window, near window.Instant) periods {
	known := c.known.Load()
	if known != nil {
		if p, ok := (*known)[*w]; ok && p[1] <= near && near < p[2] {
			return p
		}
	}
	start, end := w.PeriodBounds(near)
	before, _ := w.PeriodBounds(start - 1)
	p := periods{max(before, 0), max(start, 0), end, w.PeriodEnd(end)}
	next := map[window.Window]periods{}
	if known != nil && len(*known) < mostCalendars {
		next = maps.Clone(*known)
	}
	next[*w] = p
	c.known.CompareAndSwap(known, &next) // when another one was faster, the next call tries again
	return p
}
