package client

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// A message costs the client and the service as much as many calls do, mostly for
// threads that go to sleep and wake up. So calls that arrive while enough messages are under
// way are batched. Two messages keep both sides busy: the service decides one while the
// callers of the other one run, so a message is under way until all of its callers have their
// answers. Otherwise the first of them to call again would be alone in the next message.
const (
	// ahead is how many messages may be under way at any time.
	ahead = 2

	// maxAhead is how many may be in flight if they take long, because the network latency is
	// high. Then a message follows the one before it after the time apart.
	maxAhead = 8
	apart    = time.Millisecond

	// few is the number of waiting calls up to which all are sent in one message.
	few = 16
)

// canSendLocked reports whether one more message may be sent on l.
func (l *link) canSendLocked() bool {
	n := len(l.groups)
	return l.stream.messages < ahead || n > 0 && n < maxAhead && time.Since(l.groups[n-1].sent) >= apart
}

// flushLocked wakes the link to send what waits, unless enough messages are under way. When s is closed, it ends
// what waits with an error.
func (s *stream) flushLocked() {
	if s.closed {
		for _, c := range s.waiting {
			c.fail(queued, closed(c.verb.String()))
		}
		s.waiting = nil
	}
	if len(s.waiting) == 0 {
		return
	}
	switch l := s.link; {
	case l == nil:
		s.connectLocked()
	case !l.sending && l.canSendLocked():
		l.sending = true
		l.work <- struct{}{}
	}
}

// send sends what waits, until the link ends. It has a goroutine of its own, because flow control can block it for
// longer than a caller has time.
func (l *link) send() {
	for range l.work {
		l.stream.mu.Lock()
		l.sendLocked()
		l.stream.mu.Unlock()
	}
}

// sendLocked sends what waits, unless enough messages are under way. It releases mu meanwhile.
func (l *link) sendLocked() {
	s := l.stream
	for s.link == l && !s.closed && len(s.waiting) > 0 && l.canSendLocked() {
		g := s.groupLocked()
		if g == nil {
			continue
		}
		l.addLocked(g)
		g.sending.Add(1)
		s.mu.Unlock()
		_ = l.rpc.SendMsg(&g.message) // the receiver gets the reason if this fails
		g.sending.Done()
		s.mu.Lock()
	}
	l.sending = false
}

// shareLocked returns how many of the waiting calls are sent in the next message: all if they are
// few, and otherwise half of all calls under way or waiting.
func (s *stream) shareLocked() int {
	n := len(s.waiting)
	if n <= few {
		return few
	}
	return min((n+s.calls+1)/ahead, maxBatch)
}

// groupLocked takes the next calls that wait, as one message. It returns nil if none
// waits any more.
func (s *stream) groupLocked() *group {
	g := s.spare
	if s.spare = nil; g == nil {
		g = &group{}
	}
	g.calls, g.message.Requests = g.calls[:0], g.message.Requests[:0]
	bytes := 0
	n := 0
	g.deadline = time.Time{}
	share := s.shareLocked()
	for _, c := range s.waiting {
		last := len(g.calls) > 0 && (c.alone || g.calls[0].alone || bytes+c.bytes > maxGroup || len(g.calls) == share)
		if last {
			break
		}
		n++
		if !c.state.CompareAndSwap(queued, sent) {
			continue // its caller has given up
		}
		g.calls = append(g.calls, c)
		g.message.Requests = append(g.message.Requests, &c.request)
		bytes += c.bytes
		g.deadline = later(g.deadline, c.deadline)
	}
	s.waiting = slices.Delete(s.waiting, 0, n)
	if len(g.calls) == 0 {
		return nil
	}
	g.size = len(g.calls)
	g.message.Timeout = durationpb.New(max(time.Until(g.deadline), time.Microsecond))
	return g
}
