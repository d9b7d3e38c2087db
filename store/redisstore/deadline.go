package redisstore

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/window"
)

// serverClock estimates what time it is on a server, from the times in its
// answers. A call takes a deadline on the server's own clock along, so that
// one which reaches the server after its caller has given up counts nothing.
// The zero value knows nothing yet. It is safe for concurrent use.
//
// The estimate is never late: at the moment that an answer arrives, the server
// is at least as far as the answer says. The best of several answers is the one
// that lets the server be furthest ahead, the one that came quickest.
type serverClock struct {
	best atomic.Pointer[lead]
}

// lead is how far a server's clock is ahead of ours.
type lead struct {
	by      window.Instant // at least
	learned time.Duration
}

// leadLasts is how long the best answer stays the best: clocks drift apart, by
// well under a millisecond in this time.
const leadLasts = 10 * time.Second

// learn takes in an answer that arrived at now, a time since some fixed
// instant, and that says the server's time.
func (c *serverClock) learn(server window.Instant, now time.Duration) {
	by := server - window.Instant(now/time.Microsecond)
	best := c.best.Load()
	if best == nil || by > best.by || now-best.learned > leadLasts {
		c.best.CompareAndSwap(best, &lead{by, now}) // a lost race is a lost sample
	}
}

// known says whether the server has told its time yet.
func (c *serverClock) known() bool { return c.best.Load() != nil }

// at is the server's time at now, or a little less, once it is known.
func (c *serverClock) at(now time.Duration) window.Instant {
	return c.best.Load().by + window.Instant(now/time.Microsecond)
}
