package client

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
)

// group is one message of several calls.
type group struct {
	calls    []*call
	pending  atomic.Int32         // answers that their callers have not taken
	message  weirv1.DecideRequest // its requests are those of the calls
	size     int                  // the number of calls when they were sent
	sent     time.Time
	deadline time.Time      // the latest of the calls
	sending  sync.WaitGroup // of the message: until it was encoded, no call ends, because the next one reuses its memory
}

// back returns the calls of g that wait to be sent again.
func (g *group) back() (calls []*call) {
	for _, c := range g.calls {
		if c.state.CompareAndSwap(sent, queued) {
			calls = append(calls, c)
		}
	}
	return calls
}

// link is one call of Decide, which a stream uses until it ends.
type link struct {
	stream *stream
	rpc    grpc.ClientStream
	cancel context.CancelFunc
	work   chan struct{} // wakes send
	last   uint64        // the id of the newest message

	groups  []*group // guarded by stream.mu: in flight, the oldest first
	sending bool     // guarded by stream.mu: send is awake
}

// newLink opens a link. It returns an error if the service does not answer in time.
func newLink(s *stream) (*link, error) {
	ctx, cancel := context.WithCancel(s.client.alive)
	late := time.AfterFunc(s.client.timeout, cancel)
	rpc, err := s.client.conn.NewStream(ctx, &weirv1.WeirService_ServiceDesc.Streams[0], weirv1.WeirService_Decide_FullMethodName)
	if !late.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &link{stream: s, rpc: rpc, cancel: cancel, work: make(chan struct{}, 1)}, nil
}

// addLocked puts g in flight.
func (l *link) addLocked(g *group) {
	l.last++
	g.message.Id, g.sent = l.last, time.Now()
	l.groups = append(l.groups, g)
	l.stream.messages++
	l.stream.calls += g.size
	l.stream.watchLocked(g.deadline)
}

// receive receives answers until the link ends. Then it ends the calls in flight, or
// sends them again if the service has certainly not read them.
func (l *link) receive() {
	var in weirv1.DecideResponse
	for {
		var g *group
		err := l.rpc.RecvMsg(&in)
		if err == nil {
			g, err = l.read(&in)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = status.Error(codes.Unavailable, "the service has ended the stream")
			}
			l.end(err)
			return
		}
		l.wake(g)
	}
}

// read reads the answers to the oldest message in flight, and returns that.
func (l *link) read(in *weirv1.DecideResponse) (g *group, err error) {
	s := l.stream
	s.mu.Lock()
	if len(l.groups) > 0 {
		g = l.groups[0]
	}
	s.mu.Unlock()
	switch {
	case g == nil || g.message.Id != in.Id && in.Problem == nil:
		return nil, status.Errorf(codes.Internal, "an answer with id %d, which was not asked for", in.Id)
	case in.Problem == nil && len(in.Answers) != len(g.calls):
		return nil, status.Errorf(codes.Internal, "%d answers to %d requests", len(in.Answers), len(g.calls))
	}
	g.sending.Wait() // for a service that answers too early
	s.mu.Lock()
	l.groups = slices.Delete(l.groups, 0, 1) // from here on, its calls are those of the receiver
	s.mu.Unlock()
	if again := l.answer(g, in); len(again) > 0 {
		s.mu.Lock()
		s.waiting = append(again, s.waiting...)
		s.mu.Unlock()
	}
	return g, nil
}

// answer writes the answers to the calls of g. It returns the calls to send again, each by itself,
// because their answers together were too large, so that nothing was counted. The others stay in
// g.calls.
func (l *link) answer(g *group, in *weirv1.DecideResponse) (again []*call) {
	p := in.Problem
	if p != nil && p.Reason == weirv1.ErrorReason_TOO_LARGE.String() && len(g.calls) > 1 {
		for _, c := range g.calls {
			c.alone = true
		}
		again = g.back()
		clear(g.calls)
		g.calls = g.calls[:0]
		return again
	}
	n := 0
	for i, c := range g.calls {
		if !c.state.CompareAndSwap(sent, claimed) {
			continue // its caller has given up
		}
		g.calls[n] = c
		n++
		if p != nil {
			c.err = problemError(c.verb.String(), p, false)
			continue
		}
		c.err = readAnswer(in.Answers[i], c.verb, c.decision)
	}
	clear(g.calls[n:])
	g.calls = g.calls[:n]
	return nil
}

// wake wakes the callers of the message that was answered. All answers are read before the first of
// them runs, so a thread that wakes up for them finds several.
func (l *link) wake(g *group) {
	clear(g.message.Requests)
	if len(g.calls) == 0 { // nobody waits for its answer
		l.stream.release(g)
		return
	}
	g.pending.Store(int32(len(g.calls))) //nolint:gosec // at most maxBatch
	for _, c := range g.calls {
		c.group = g
		c.done <- struct{}{}
	}
}

// release keeps the memory of g, all of whose answers were taken, and sends what waits.
func (s *stream) release(g *group) {
	clear(g.calls)
	s.mu.Lock()
	s.endLocked(g)
	s.spare = g
	s.flushLocked()
	s.mu.Unlock()
}

// endLocked counts g as no longer under way.
func (s *stream) endLocked(g *group) {
	s.messages--
	s.calls -= g.size
}

// end ends the link, whose error is err.
func (l *link) end(err error) {
	l.cancel()
	s := l.stream
	s.mu.Lock()
	if s.link == l {
		s.link = nil
	}
	groups := l.groups
	l.groups = nil
	close(l.work)
	s.mu.Unlock()
	for _, g := range groups {
		g.sending.Wait()
	}
	s.mu.Lock()
	unread := reasonOf(err) == weirv1.ErrorReason_STOPPING.String()
	var again []*call
	for _, g := range groups {
		s.endLocked(g)
		for _, c := range g.calls {
			switch {
			case unread && c.again < mostAgain && c.state.CompareAndSwap(sent, queued):
				c.again++
				again = append(again, c)
			case c.state.CompareAndSwap(sent, claimed):
				c.finish(l.lost(c, err, unread))
			}
		}
	}
	s.waiting = append(again, s.waiting...)
	s.flushLocked()
	s.mu.Unlock()
}

// lost returns the error of a call that was sent and not answered.
func (l *link) lost(c *call, err error, unread bool) error {
	if l.stream.client.alive.Err() != nil {
		return closed(c.verb.String())
	}
	return errorOf(c.verb.String(), err, unread)
}

// drain waits until the link has ended, without calls.
func (l *link) drain() {
	for l.rpc.RecvMsg(l) == nil {
	}
}

// reasonOf returns the reason that a service gives for an error, or an empty string.
func reasonOf(err error) string {
	if s := status.Convert(err); s.Code() == codes.Unavailable {
		var e *Error
		if errors.As(errorOf("", err, false), &e) {
			return e.Reason
		}
	}
	return ""
}
