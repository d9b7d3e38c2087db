package remote

import (
	"sync/atomic"
	"time"
)

const (
	// breakAfter is how many time-outs, one after the other, open a breaker.
	breakAfter = 5
	// BreakFor is the pause between two attempts to reach a server that does not answer, and
	// between two attempts to connect at first.
	BreakFor = 100 * time.Millisecond
)

// Breaker is a circuit breaker. It keeps calls away from a server that does not answer, so that callers do
// not spend their time waiting for it. It counts time-outs, and not calls: all
// calls that a server leaves unanswered at the same time count as one time-out. Any answer
// closes it, an error too: a server that refuses quickly costs no time. The zero
// value is closed. It is safe for concurrent use and has no lock.
type Breaker struct {
	timeouts atomic.Int64  // since the last answer
	counted  atomic.Int64  // when the last time-out that counted ended
	changes  atomic.Uint64 // how often it has opened and closed; odd while it is open
}

// Open reports whether no call may go to the server.
func (b *Breaker) Open() bool { return b.changes.Load()%2 == 1 }

// Answered closes the breaker, after an answer of the server.
func (b *Breaker) Answered() {
	// Reading first keeps the cache line shared between callers.
	if b.timeouts.Load() != 0 {
		b.timeouts.Store(0)
	}
	if changes := b.changes.Load(); changes%2 == 1 {
		b.changes.CompareAndSwap(changes, changes+1)
	}
}

// TimedOut counts a call that went to the server at began and has no answer by now,
// both as [Elapsed] returns them. A call that began before the last one
// ended belongs to that. TimedOut reports whether this has opened the breaker.
func (b *Breaker) TimedOut(began, now time.Duration) (opened bool) {
	last := b.counted.Load()
	if int64(began) < last || !b.counted.CompareAndSwap(last, int64(now)) {
		return false
	}
	return b.timeouts.Add(1) >= breakAfter && b.Trip()
}

// Trip opens the breaker. It reports whether it was closed.
func (b *Breaker) Trip() bool {
	changes := b.changes.Load()
	return changes%2 == 0 && b.changes.CompareAndSwap(changes, changes+1)
}

// started is what breakers count time from.
var started = time.Now()

// Elapsed returns the time since the process began, which never goes back.
func Elapsed() time.Duration { return time.Since(started) }
