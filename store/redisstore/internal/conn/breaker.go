package conn

import (
	"sync/atomic"
	"time"
)

const (
	// breakAfter is how many time-outs, one after the other, open a breaker.
	breakAfter = 5
	// breakFor is the pause between two attempts to reach a node that does not answer, and
	// between two attempts to connect at first.
	breakFor = 100 * time.Millisecond
)

// breaker keeps calls away from a node that does not answer, so that callers do
// not spend their time waiting for it. It counts time-outs, and not calls: all
// calls that a node leaves unanswered at the same time count as one time-out. Any answer
// closes it, an error too: a node that refuses quickly costs no time. The zero
// value is closed. It is safe for concurrent use and has no lock.
type breaker struct {
	timeouts atomic.Int64  // since the last answer
	counted  atomic.Int64  // when the last time-out that counted ended
	changes  atomic.Uint64 // how often it has opened and closed; odd while it is open
}

// open reports whether no call may go to the node.
func (b *breaker) open() bool { return b.changes.Load()%2 == 1 }

// openings returns how often the breaker has opened.
func (b *breaker) openings() uint64 { return (b.changes.Load() + 1) / 2 }

// answered closes the breaker, after an answer of the node.
func (b *breaker) answered() {
	// Reading first keeps the cache line shared between callers.
	if b.timeouts.Load() != 0 {
		b.timeouts.Store(0)
	}
	if changes := b.changes.Load(); changes%2 == 1 {
		b.changes.CompareAndSwap(changes, changes+1)
	}
}

// timedOut counts a call that went to the node at began and has no answer by now,
// both times since some fixed instant. A call that began before the last one
// ended belongs to that. timedOut reports whether this has opened the breaker.
func (b *breaker) timedOut(began, now time.Duration) (opened bool) {
	last := b.counted.Load()
	if int64(began) < last || !b.counted.CompareAndSwap(last, int64(now)) {
		return false
	}
	return b.timeouts.Add(1) >= breakAfter && b.trip()
}

// trip opens the breaker. It reports whether it was closed.
func (b *breaker) trip() bool {
	changes := b.changes.Load()
	return changes%2 == 0 && b.changes.CompareAndSwap(changes, changes+1)
}
