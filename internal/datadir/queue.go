package datadir

import (
	"context"
	"sync"
)

// queue holds the calls that wait until their changes are synced. A flush takes all that wait
// when it begins, so they are synced together.
type queue struct {
	wake chan struct{} // wakes the writer when a call waits; buffered, with a capacity of one

	mu     sync.Mutex
	next   chan struct{} // guarded by mu; closed when the next flush has ended
	failed bool          // guarded by mu; the last flush failed, or hangs, so calls do not wait
}

// wait waits for the end of a flush that began after the call of wait. It returns at once if
// the disk fails, because counting continues in memory.
func (q *queue) wait(ctx context.Context) {
	q.mu.Lock()
	if q.failed {
		q.mu.Unlock()
		return
	}
	if q.next == nil {
		q.next = make(chan struct{})
	}
	next := q.next
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default: // the writer is woken already
	}
	select {
	case <-next:
	case <-ctx.Done(): // the call is counted nevertheless
	}
}

// take returns what to close when the flush that now begins has ended, or nil.
func (q *queue) take() chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.next
	q.next = nil
	return next
}

// done wakes the calls that wait for a flush.
func (q *queue) done(waited chan struct{}, failed bool) {
	q.mu.Lock()
	q.failed = failed
	var more chan struct{}
	if failed {
		more, q.next = q.next, nil
	}
	q.mu.Unlock()
	for _, c := range []chan struct{}{waited, more} {
		if c != nil {
			close(c)
		}
	}
}

// waits reports whether a call waits for the next flush.
func (q *queue) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next != nil
}

// fails reports whether the last flush failed, or hangs.
func (q *queue) fails() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}
