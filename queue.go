package weir

import (
	"errors"
	"sync"
	"sync/atomic"
)

// ErrTooManyWaiting is returned by [Limiter.Wait] when as many callers wait as may
// ([WithMaxWaiting]).
var ErrTooManyWaiting = errors.New("weir: too many callers wait")

// maxWaiting is the most callers that wait in a limiter without [WithMaxWaiting].
const maxWaiting = 1000

// waiting are the callers who wait in a limiter.
type waiting struct {
	most    int64
	callers atomic.Int64 // is changed with mu

	mu     sync.Mutex
	queues map[string]*queue // guarded by mu; by key
}

// queue are the callers who wait for one key, in the order in which they came. The first one
// asks the limit, and the others wait for it to leave. No queue in waiting.queues is empty.
type queue struct {
	first, last *waiter
	hits        int64 // of all of them
}

// waiter is a caller in a queue.
type waiter struct {
	turn       chan struct{} // closed when the caller is the first
	hits       int64         // at most mostHits
	prev, next *waiter
}

// mostHits is the most hits that a caller's place in a queue counts for, so that their sum does
// not overflow.
const mostHits = 1 << 40

// queued reports whether callers wait for key.
func (w *waiting) queued(key string) bool {
	if w.callers.Load() == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queues[key] != nil
}

// join appends a caller to the queue of key. ahead are the hits of those who came before, -1
// if there are none.
func (w *waiting) join(key string, hits int64) (me *waiter, ahead int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.callers.Load() >= w.most {
		return nil, 0, ErrTooManyWaiting
	}
	w.callers.Add(1)
	hits = min(hits, mostHits)
	q := w.queues[key]
	if me = (&waiter{turn: make(chan struct{}), hits: hits}); q == nil {
		if w.queues == nil {
			w.queues = map[string]*queue{}
		}
		w.queues[key] = &queue{me, me, hits}
		close(me.turn)
		return me, -1, nil
	}
	me.prev, q.last.next, q.last = q.last, me, me
	ahead, q.hits = q.hits, q.hits+hits
	return me, ahead, nil
}

// leave removes me from the queue of key. If it was the first, the next one is.
func (w *waiting) leave(key string, me *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.callers.Add(-1)
	q := w.queues[key]
	q.hits -= me.hits
	if me.next != nil {
		me.next.prev = me.prev
	} else {
		q.last = me.prev
	}
	switch {
	case me.prev != nil:
		me.prev.next = me.next
	case me.next != nil:
		q.first = me.next
		close(q.first.turn)
	default:
		delete(w.queues, key)
	}
}
