package client

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// A message costs the client and the service as much as many calls do, mostly for
// threads that go to sleep and wake up. So calls that arrive while enough messages are in
// flight are batched. Two messages keep both sides busy: the service decides one while the
// callers of the other one run.
const (
	// ahead is how many messages may be in flight at any time.
	ahead = 2

	// most is how many may be in flight if they take long, because the service is far
	// away. Then a message follows the one before it after the time apart.
	most  = 8
	apart = time.Millisecond

	// few is how many calls are batched in one message, although no other is in flight.
	few = 16
)

// hasRoomLocked reports whether one more message may be sent on l.
func (l *link) hasRoomLocked() bool {
	n := len(l.groups)
	return n < ahead || n < most && time.Since(l.groups[n-1].sent) >= apart
}

// flushLocked sends what waits, unless enough messages are in flight. It releases mu
// meanwhile.
func (s *stream) flushLocked() {
	for len(s.waiting) > 0 && !s.sending {
		l := s.link
		switch {
		case s.closed:
			return
		case l == nil:
			s.connectLocked()
			return
		case !l.hasRoomLocked():
			return
		}
		s.sending = true
		if g := s.groupLocked(l); g != nil {
			l.addLocked(g)
			s.mu.Unlock()
			_ = l.rpc.SendMsg(&g.message) // the receiver gets the reason if this fails
			s.mu.Lock()
		}
		s.sending = false
	}
}

// shareLocked returns how many of the waiting calls are sent in the next message on l: all
// of a few, and otherwise half of all calls that are under way.
func (s *stream) shareLocked(l *link) int {
	n := len(s.waiting)
	if n <= few {
		return few
	}
	for _, g := range l.groups {
		n += g.size
	}
	return min((n+1)/ahead, maxBatch)
}

// groupLocked takes the next calls that wait, as one message on l. It returns nil if
// none waits any more.
func (s *stream) groupLocked(l *link) *group {
	g := s.spare
	if s.spare = nil; g == nil {
		g = &group{}
	}
	g.calls, g.message.Requests = g.calls[:0], g.message.Requests[:0]
	bytes := 0
	n, longest := 0, time.Time{}
	bounded := true
	share := s.shareLocked(l)
	for _, c := range s.waiting {
		last := len(g.calls) > 0 && (c.alone || g.calls[0].alone || bytes+c.bytes > maxGroup || len(g.calls) == share)
		if last {
			break
		}
		n++
		if !c.state.CompareAndSwap(queued, sent) {
			continue // nobody waits for it
		}
		g.calls = append(g.calls, c)
		g.message.Requests = append(g.message.Requests, &c.request)
		bytes += c.bytes
		bounded = bounded && !c.deadline.IsZero()
		if c.deadline.After(longest) {
			longest = c.deadline
		}
	}
	s.waiting = slices.Delete(s.waiting, 0, n)
	if len(g.calls) == 0 {
		return nil
	}
	g.size = len(g.calls)
	g.timeout = max(time.Until(longest), time.Microsecond)
	if !bounded {
		g.timeout = max(g.timeout, s.client.timeout)
	}
	g.message.Timeout = durationpb.New(g.timeout)
	return g
}
