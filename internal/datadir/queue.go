package datadir

import (
	"context"
	"sync"
)

// queue is where calls wait until what they changed is synced. A flush that begins
// takes all that wait, so they are synced together.
type queue struct {
	wake chan struct{} // tells the writer that somebody waits; has room for one

	mu     sync.Mutex
	next   chan struct{} // guarded by mu; closed when the next flush has ended
	failed bool          // guarded by mu; the last flush failed: nobody waits
}

// wait waits until a flush has ended that began after the call of wait. It returns at
// once when the disk fails: counting goes on in memory.
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
	default: // somebody else has told
	}
	select {
	case <-next:
	case <-ctx.Done(): // the call is counted all the same
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

// done ends the waiting for a flush.
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

// fails reports whether the last flush failed.
func (q *queue) fails() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}
