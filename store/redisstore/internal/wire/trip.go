package wire

import (
	"time"
)

// quickest is the shortest round trip of late: of about a second, and of the time
// before that. The others are longer because of what waits here or at the server. The
// zero value has seen none.
type quickest struct {
	best, before time.Duration
	since        time.Duration
}

// quickestFor is how long the shortest round trip is sought before the next time
// begins.
const quickestFor = time.Second

// learn uses a round trip that ended at now.
func (q *quickest) learn(trip, now time.Duration) {
	if q.best == 0 || now-q.since > quickestFor {
		q.before, q.best, q.since = q.best, trip, now
	}
	q.best = min(q.best, trip)
}

// get returns the shortest round trip, or 0.
func (q *quickest) get() time.Duration {
	if q.before == 0 {
		return q.best
	}
	return min(q.best, q.before)
}
