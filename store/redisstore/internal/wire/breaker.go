package wire

import (
	"sync/atomic"
	"time"
)

const (
	// breakAfter is how many calls in a row stay without an answer until a
	// breaker opens.
	breakAfter = 5
	// breakFor is how long an open breaker waits until it lets one call
	// through to see whether the node answers again.
	breakFor = 100 * time.Millisecond
)

// breaker keeps calls away from a node that does not answer, so that callers do
// not spend their time waiting for it. While it is open it lets one call through
// every breakFor. Any answer closes it, an error too: a node that refuses quickly
// costs no time. The zero value is closed. It is safe for concurrent use and has
// no lock.
type breaker struct {
	silences atomic.Int64 // calls without an answer since the last answer
	trial    atomic.Int64 // when open: the instant of the next trial; 0 closed
}

// admits reports whether a call may go to the node at now, a time since some
// fixed instant. Each call that it admits ends with answered or silent.
func (b *breaker) admits(now time.Duration) bool {
	trial := b.trial.Load()
	if trial == 0 {
		return true
	}
	return int64(now) >= trial && b.trial.CompareAndSwap(trial, int64(now+breakFor))
}

// refuses reports whether no call may go to the node at now.
func (b *breaker) refuses(now time.Duration) bool { return int64(now) < b.trial.Load() }

// answered closes the breaker, after an answer of the node.
func (b *breaker) answered() {
	// Reading first keeps the cache line shared between callers.
	if b.silences.Load() != 0 {
		b.silences.Store(0)
	}
	if b.trial.Load() != 0 {
		b.trial.Store(0)
	}
}

// silent counts a call without an answer by now: its time was over, or its
// connection broke. It reports whether this has opened the breaker.
func (b *breaker) silent(now time.Duration) (opened bool) {
	return b.silences.Add(1) >= breakAfter && b.trial.CompareAndSwap(0, int64(now+breakFor))
}

// open reports whether the breaker is open.
func (b *breaker) open() bool { return b.trial.Load() != 0 }
