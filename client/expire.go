package client

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// watchLocked makes expire run at t at the latest. But expire pauses for a hundredth of the timeout of the client, because
// it looks at all calls, and each may have its own deadline.
func (s *stream) watchLocked(t time.Time) {
	t = later(t, s.expired.Add(max(s.client.timeout/100, time.Millisecond)))
	if s.watched.IsZero() || t.Before(s.watched) {
		s.watched = t
		s.timer.Reset(time.Until(t))
	}
}

// expire ends the calls whose deadline has passed. It also ends the link if its oldest message is overdue and no caller
// waits for an answer on it, so that later calls get another link. While a caller has time left, its answer may
// come.
func (s *stream) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := time.Now()
	s.expired, s.watched = now, time.Time{}
	waits := func(c *call, from uint32) bool {
		switch {
		case c.state.Load() != from:
			return false
		case now.Before(c.deadline):
			s.watchLocked(c.deadline)
			return true
		case c.state.CompareAndSwap(from, abandoned):
			c.finish(s.late(c, from))
		}
		return false
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(c *call) bool { return !waits(c, queued) })
	l := s.link
	if l == nil || len(l.groups) == 0 {
		return
	}
	needed := false
	for _, g := range l.groups {
		for _, c := range g.calls {
			needed = waits(c, sent) || needed
		}
		if now.Before(g.deadline) {
			s.watchLocked(g.deadline)
		}
	}
	if !needed && !now.Before(l.groups[0].deadline) {
		s.link = nil
		l.cancel()
		s.flushLocked()
	}
}

// late returns the error of a call that has no answer in time.
func (s *stream) late(c *call, state uint32) error {
	if state == queued {
		return s.unsent(c, context.DeadlineExceeded)
	}
	return &Error{call: c.verb.String(), code: codes.DeadlineExceeded, detail: "the service does not answer", err: context.DeadlineExceeded}
}

// later returns the later one of two instants.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
