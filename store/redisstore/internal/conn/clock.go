package conn

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/window"
)

// recentMax is the largest of the values of about the last time of some length, and of the
// time before that. So one value cannot displace all better ones when these get too old. The
// zero value has none. It is safe for concurrent use.
type recentMax struct{ now atomic.Pointer[maxima] }

// maxima are the largest values since some time, and of the time before that.
type maxima struct {
	last, before int64
	since        time.Duration
}

// learn uses a value of now, a time since some fixed instant, for one to two times lasts.
func (m *recentMax) learn(value int64, now, lasts time.Duration) {
	switch known := m.now.Load(); { // a lost race is a lost sample
	case known == nil:
		m.now.CompareAndSwap(nil, &maxima{value, value, now})
	case now-known.since > lasts:
		m.now.CompareAndSwap(known, &maxima{value, known.last, now})
	case value > known.last:
		m.now.CompareAndSwap(known, &maxima{value, known.before, known.since})
	}
}

// known reports whether there is a value.
func (m *recentMax) known() bool { return m.now.Load() != nil }

// max returns the largest value, of which there is one.
func (m *recentMax) max() int64 {
	known := m.now.Load()
	return max(known.last, known.before)
}

// serverClock estimates a server's time from the times in its answers.
//
// The estimate is never ahead of the server: when an answer arrives, the server's
// clock is at the time in the answer or later. The best of several answers is
// the one that puts the server furthest ahead: the one that came quickest.
type serverClock struct{ recentMax }

// leadLasts is how long the best answer is used, and twice that at most. In this time clocks
// drift apart by well under a millisecond.
const leadLasts = 10 * time.Second

// learn uses an answer with the server's time that arrived at now.
func (c *serverClock) learn(server window.Instant, now time.Duration) {
	c.recentMax.learn(int64(server)-now.Microseconds(), now, leadLasts)
}

// at returns the server's time at now, or a little less. The clock must be known.
func (c *serverClock) at(now time.Duration) window.Instant {
	return window.Instant(c.max() + now.Microseconds())
}

// roundTrips knows the shortest round trip of about the last second. Others are longer
// because of what waits here or at the server.
type roundTrips struct{ recentMax }

// learn uses a round trip that ended at now.
func (t *roundTrips) learn(trip, now time.Duration) {
	t.recentMax.learn(-int64(trip), now, time.Second)
}

// shortest returns the shortest round trip, or 0.
func (t *roundTrips) shortest() time.Duration {
	if !t.known() {
		return 0
	}
	return time.Duration(-t.max())
}
