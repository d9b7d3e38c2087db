package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// key is the primary key of a row: a digest of a space and a key in it.
type key [16]byte

// keyOf returns the key of op's row.
func keyOf(op *store.Op) (k key) {
	var room [256]byte
	b := room[:0]
	for _, part := range []string{op.Space.Namespace(), op.Space.ID()} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	digest := sha256.Sum256(append(b, op.Key...))
	copy(k[:], digest[:])
	return k
}

// request is some calls of one caller that a lane decides in one transaction. It has copies of
// all that it needs of them, so that the caller can leave at any time.
type request struct {
	calls  []store.Call
	ops    []store.Op // of all calls, with the memory of holds and bytes
	holds  []store.Hold
	bytes  []byte                                          // of the ops' keys and members
	keys   []key                                           // of ops
	reads  bool                                            // no call counts
	change func(window.State, window.Instant) window.State // decides, instead of the only call; nil: none
	phase  atomic.Int32
	lost   int        // how many connections have ended before they decided it
	done   chan error // gets nil when the calls have their results
}

// The phases of a request. The caller can leave it before it is decided, and it then is not
// counted; a request that the caller leaves later may be.
const (
	waiting int32 = iota
	decided
	abandoned
)

var requests = sync.Pool{New: func() any { return &request{done: make(chan error, 1)} }}

// load fills r with calls. It sets the Err of those that are not decided, and reports whether
// there are others.
func (r *request) load(calls []store.Call) bool {
	r.reads = true
	for i := range calls {
		c := &calls[i]
		c.Err = nil
		r.calls = append(r.calls, store.Call{Verb: c.Verb})
		r.ops = append(r.ops, c.Ops...)
		before := len(r.keys)
		if c.Once != nil && len(c.Ops) > 0 {
			r.ops = append(r.ops, *c.Once)
		}
		for n := range r.ops[before:] {
			r.keys = append(r.keys, keyOf(&r.ops[before+n]))
		}
		if repeated(r.keys[before:]) {
			c.Err = store.ErrRepeated
			r.calls[i].Err = c.Err
			r.keys, r.ops = r.keys[:before], r.ops[:before]
		} else if len(c.Ops) > 0 {
			r.reads = r.reads && c.Verb == store.Check
		}
	}
	for i := range r.ops {
		op := &r.ops[i]
		r.bytes = append(append(r.bytes, op.Key...), op.Member...)
		if op.Hold != nil {
			r.holds = append(r.holds, *op.Hold)
		}
	}
	bytes, holds, ops := r.bytes, r.holds, r.ops
	for i := range ops {
		op := &ops[i]
		op.Key, bytes = bytes[:len(op.Key):len(op.Key)], bytes[len(op.Key):]
		op.Member, bytes = bytes[:len(op.Member):len(op.Member)], bytes[len(op.Member):]
		if op.Hold != nil {
			op.Hold, holds = &holds[0], holds[1:]
		}
	}
	for i := range r.calls {
		if c := &r.calls[i]; c.Err == nil {
			n := len(calls[i].Ops)
			c.Ops, ops = ops[:n:n], ops[n:]
			if calls[i].Once != nil && n > 0 {
				c.Once, ops = &ops[0], ops[1:]
			}
		}
	}
	return len(r.ops) > 0
}

// repeated reports whether two of a call's keys are the same.
func repeated(keys []key) bool {
	if len(keys) > 16 {
		seen := make(map[key]bool, len(keys))
		for _, k := range keys {
			if seen[k] {
				return true
			}
			seen[k] = true
		}
		return false
	}
	for i := range keys {
		for _, other := range keys[:i] {
			if other == keys[i] {
				return true
			}
		}
	}
	return false
}

// namespace returns that of the calls: one caller's are in the same.
func (r *request) namespace() string { return r.ops[0].Space.Namespace() }

// store writes the results of call i to the caller's own.
func (r *request) store(to *store.Call, i int) {
	c := &r.calls[i]
	if to.Err = c.Err; c.Err != nil {
		return
	}
	for n := range c.Ops {
		from, op := &c.Ops[n], &to.Ops[n]
		op.Result, op.N = from.Result, from.N
		if op.Hold != nil {
			op.Hold.Hold, op.Hold.Decided = from.Hold.Hold, from.Hold.Decided
		}
	}
	if c.Once != nil {
		to.Once.Result = c.Once.Result
	}
}

// free makes r available to other callers. No lane uses it.
func (r *request) free() {
	clear(r.calls)
	clear(r.ops)
	clear(r.holds)
	r.calls, r.ops, r.holds, r.bytes, r.keys, r.change = r.calls[:0], r.ops[:0], r.holds[:0], r.bytes[:0], r.keys[:0], nil
	r.lost = 0
	r.phase.Store(waiting)
	requests.Put(r)
}

// queue has the requests that wait for a lane, and the lanes that wait for requests. It is safe for
// concurrent use.
type queue struct {
	mu       sync.Mutex
	requests []*request // guarded by mu; in order
	idle     []*lane    // guarded by mu; the one that was used last is the last
}

// add queues r.
func (q *queue) add(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(q.requests, r)
	q.wake()
}

// again puts requests that a lane could not begin before all others.
func (q *queue) again(rs []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = slices.Insert(q.requests, 0, rs...)
	q.wake()
}

// wake makes the lane that was used last look at the queue, so that a lone caller uses one connection only. A
// lane that is busy looks at the queue by itself before it rests. It needs the lock.
func (q *queue) wake() {
	if n := len(q.idle) - 1; n >= 0 {
		q.idle[n].wake <- struct{}{}
		q.idle = q.idle[:n]
	}
}

// wakeAll makes all idle lanes look at the queue, and at the state of the server.
func (q *queue) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.idle) > 0 {
		q.wake()
	}
}

// rest makes l idle, or wakes it if requests wait.
func (q *queue) rest(l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idle = append(q.idle, l)
	if len(q.requests) > 0 {
		q.wake()
	}
}

// leave ends the rest of l, which has something else to do. If l was woken, another lane is.
func (q *queue) leave(l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.idle, l); i >= 0 {
		q.idle = slices.Delete(q.idle, i, i+1)
		return
	}
	<-l.wake
	if len(q.requests) > 0 {
		q.wake()
	}
}

// take appends the requests of the next transaction to batch: at most most calls, unless
// the first request has more. If it leaves others, another lane looks at them.
func (q *queue) take(batch []*request, most int) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	calls, n := 0, 0
	for _, r := range q.requests {
		if calls += len(r.calls); n > 0 && calls > most {
			break
		}
		n++
	}
	batch = append(batch, q.requests[:n]...)
	left := copy(q.requests, q.requests[n:])
	clear(q.requests[left:])
	if q.requests = q.requests[:left]; left > 0 {
		q.wake()
	}
	return batch
}

// finish delivers the outcome of a request that is not in the queue any more.
func (s *Store) finish(r *request, err error) {
	s.server.End(r.namespace(), len(r.calls)) // before the caller uses it again
	r.done <- err
}

// drain ends all queued requests.
func (s *Store) drain(err error) {
	for {
		batch := s.queue.take(nil, maxSlice)
		if len(batch) == 0 {
			return
		}
		for _, r := range batch {
			s.finish(r, err)
		}
	}
}

// unavailable returns why the server gets no calls, or nil when it gets them.
func (s *Store) unavailable() error {
	if s.server.Breaker.Open() {
		return remote.ErrUnavailable
	}
	return s.link.unavailable()
}

// count counts err if it is an outage, and returns it.
func (s *Store) count(err error) error {
	var out *store.OutageError
	if errors.As(err, &out) {
		s.server.Count(out.Reason)
	}
	return err
}

// decide has a lane decide r, and waits for it. The error concerns all of its calls.
func (s *Store) decide(ctx context.Context, r *request) error {
	err := s.unavailable()
	switch {
	case ctx.Err() != nil:
		err = endOf(ctx)
	case err == nil:
		err = s.server.Begin(ctx, r.namespace(), len(r.calls), s.config.inFlight)
	}
	if err != nil {
		return s.count(outage(err, true))
	}
	began := remote.Elapsed()
	s.queue.add(r)
	if s.closed.Load() { // since the lanes have ended
		s.drain(store.ErrClosed)
	}
	select {
	case err = <-r.done:
	case <-ctx.Done():
		err = s.leave(ctx, r)
	}
	s.heard(ctx, answers(err), began)
	return s.count(err)
}

// leave ends a caller's wait for r, when ctx is done.
func (s *Store) leave(ctx context.Context, r *request) error {
	if r.phase.CompareAndSwap(waiting, abandoned) {
		return outage(endOf(ctx), true)
	}
	select {
	case err := <-r.done: // meanwhile
		return err
	default:
	}
	r.phase.Store(abandoned)
	return outage(endOf(ctx), false)
}

// heard passes on to the circuit breaker whether the server has answered a call.
func (s *Store) heard(ctx context.Context, answered bool, began time.Duration) {
	open := s.server.Breaker.Open()
	if opened := s.server.Heard(ctx, answered, began, s.config.Timeout); opened || open && answered {
		s.background(func() { s.server.Report(nil) }) // no decision waits for Changed
		s.queue.wakeAll()                             // they ask the server
	}
}
