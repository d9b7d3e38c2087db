package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/store"
)

// call is one request on a stream. Its state determines its owner: the calling goroutine until it is
// sent, and then the goroutine that changes the state from sent.
type call struct {
	state    atomic.Uint32
	verb     store.Verb
	alone    bool // it is sent in a separate message
	again    int  // how often it was sent and certainly not read
	request  weirv1.Request
	bytes    int       // of the request
	deadline time.Time // that of its context or, without one, of the client
	decision *weir.Decision
	err      error
	group    *group        // with whose answer the call ended, or nil
	done     chan struct{} // gets an element at the end
}

// The states of a call.
const (
	queued    uint32 = iota // it waits to be sent
	sent                    // it is in flight
	claimed                 // its answer is being written
	abandoned               // its time is over, or its caller has given up
)

// finish ends a call that was claimed.
func (c *call) finish(err error) {
	c.err = err
	c.done <- struct{}{}
}

// fail ends c with an error, unless its caller has given up.
func (c *call) fail(from uint32, err error) {
	if c.state.CompareAndSwap(from, claimed) {
		c.finish(err)
	}
}

// Resource limits of a stream.
const (
	maxGroup  = 256 << 10 // bytes of a message of several calls
	mostAgain = 3
)

// stream is a stream of the service that many calls share. It connects when it is
// needed, and again when its connection ends.
type stream struct {
	client *Client

	mu         sync.Mutex
	waiting    []*call // guarded by mu
	link       *link   // guarded by mu; nil: not connected
	connecting bool    // guarded by mu
	messages   int     // guarded by mu; under way: in flight, or with answers that were not taken
	calls      int     // guarded by mu; those of the messages under way
	spare      *group  // guarded by mu; memory for the next message, or nil
	closed     bool    // guarded by mu

	timer   *time.Timer // runs expire
	watched time.Time   // guarded by mu; when timer runs, or zero
	expired time.Time   // guarded by mu; when expire last ran
}

func newStream(c *Client) *stream {
	s := &stream{client: c}
	s.timer = time.AfterFunc(time.Hour, s.expire)
	s.timer.Stop()
	return s
}

// do makes a call.
func (s *stream) do(ctx context.Context, verb store.Verb, r *weir.Request, d *weir.Decision) error {
	c := s.client.calls.Get().(*call)
	c.bytes = setRequest(&c.request, verb, r)
	if err := tooLarge(&c.request, c.bytes); err != nil {
		return err
	}
	c.verb, c.alone, c.again, c.decision, c.err = verb, false, 0, d, nil
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(s.client.timeout)
	}
	c.deadline = deadline
	c.state.Store(queued)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return closed(verb.String())
	}
	s.waiting = append(s.waiting, c)
	s.watchLocked(c.deadline)
	s.flushLocked()
	s.mu.Unlock()
	if ctx.Done() == nil {
		<-c.done
		return s.result(c)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		switch {
		case c.state.CompareAndSwap(queued, abandoned):
			return contextError(verb.String(), ctx.Err(), true)
		case c.state.CompareAndSwap(sent, abandoned):
			return contextError(verb.String(), ctx.Err(), false)
		}
		<-c.done
	}
	return s.result(c)
}

// result returns the error of c, which has ended, and keeps its memory.
func (s *stream) result(c *call) error {
	err := c.err
	if g := c.group; g != nil && g.pending.Add(-1) == 0 {
		s.release(g)
	}
	c.decision, c.group = nil, nil
	if c.bytes <= maxKept && c.state.Load() == claimed { // otherwise its message may yet be encoded
		s.client.calls.Put(c)
	}
	return err
}

// connectLocked connects s, unless another goroutine does.
func (s *stream) connectLocked() {
	if s.connecting {
		return
	}
	s.connecting = true
	s.client.goings.Go(s.connect)
}

// connect connects s, and receives its answers until the connection ends.
func (s *stream) connect() {
	l, err := newLink(s)
	s.mu.Lock()
	s.connecting = false
	if err != nil || s.closed {
		lost := s.waiting
		s.waiting = nil
		s.mu.Unlock()
		if l != nil {
			l.cancel()
			l.drain()
		}
		for _, c := range lost {
			c.fail(queued, s.unsent(c, err))
		}
		return
	}
	s.link = l
	s.client.goings.Go(l.send)
	s.flushLocked()
	s.mu.Unlock()
	l.receive()
}

// unsent returns the error of a call that was not sent.
func (s *stream) unsent(c *call, err error) error {
	if s.client.alive.Err() != nil || err == nil {
		return closed(c.verb.String())
	}
	if status.Code(err) == codes.Canceled || errors.Is(err, context.DeadlineExceeded) {
		return &Error{call: c.verb.String(), code: codes.DeadlineExceeded, detail: "the service cannot be reached", uncounted: true, err: context.DeadlineExceeded}
	}
	return errorOf(c.verb.String(), err, true)
}

// close ends s. The goroutines of s end soon after.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
	s.flushLocked()
}
