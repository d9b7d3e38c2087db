package conn

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/window"
)

// serverClock estimates a server's time from the times in its answers. The zero
// value has no estimate yet. It is safe for concurrent use.
//
// The estimate is never ahead of the server: when an answer arrives, the server's
// clock is at the time in the answer or later. The best of several answers is
// the one that puts the server furthest ahead: the one that came quickest.
type serverClock struct {
	best atomic.Pointer[lead]
}

// lead is how far a server's clock is ahead of this machine's: the best answer
// since some time, and the best of the time before that. So no single slow answer
// takes the place of all better ones.
type lead struct {
	by, before window.Instant // at least
	since      time.Duration
}

// leadLasts is how long the best answer stays the best, and then once more as long
// beside the next one. In this time clocks drift apart by well under a millisecond.
const leadLasts = 10 * time.Second

// learn uses an answer with the server's time that arrived at now, a time since
// some fixed instant.
func (c *serverClock) learn(server window.Instant, now time.Duration) {
	by := server - window.Instant(now/time.Microsecond)
	best := c.best.Load()
	switch {
	case best == nil:
		c.best.CompareAndSwap(nil, &lead{by, by, now})
	case now-best.since > leadLasts:
		c.best.CompareAndSwap(best, &lead{by, best.by, now})
	case by > best.by:
		c.best.CompareAndSwap(best, &lead{by, best.before, best.since}) // a lost race is a lost sample
	}
}

// at returns the server's time at now, or a little less. It needs an estimate.
func (c *serverClock) at(now time.Duration) window.Instant {
	best := c.best.Load()
	return max(best.by, best.before) + window.Instant(now/time.Microsecond)
}
