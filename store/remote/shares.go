package remote

import (
	"context"
	"slices"
	"sync"
)

// shares limits the calls in flight, and divides their places among namespaces. A call gets a place if its namespace
// then has at most three times as many places as are free. So one busy namespace gets three quarters of them, two get
// three sevenths each, and a new one finds some free. Other calls wait. The next one is of the namespace with the
// fewest in flight, and of several such namespaces that whose last turn was longest ago. It is safe for concurrent
// use.
type shares struct {
	mu       sync.Mutex
	of       map[string]*share // by namespace, each that has called; guarded by mu
	inFlight int               // guarded by mu
	waiting  []*share          // with calls that wait, in the order of their turns; guarded by mu
}

// share has the calls of one namespace. The mutex of shares guards its fields.
type share struct {
	inFlight int
	waiting  []*waiter // in order
}

// waiter is some calls of one caller, which all get their places together.
type waiter struct {
	calls, most int
	admitted    chan struct{}
}

// begin counts calls as in flight until end, and reports whether it did. There are most places; calls that are alone
// can be more. It waits for at most half of the time that ctx has left, so that the server has the other half.
func (s *shares) begin(ctx context.Context, namespace string, calls, most int) bool {
	s.mu.Lock()
	of := s.of[namespace]
	if of == nil {
		if s.of == nil {
			s.of = map[string]*share{}
		}
		of = &share{}
		s.of[namespace] = of
	}
	if len(s.waiting) == 0 && s.fits(of, calls, most) {
		s.count(of, calls)
		s.mu.Unlock()
		return true
	}
	w := &waiter{calls, most, make(chan struct{})}
	if len(of.waiting) == 0 {
		s.waiting = append(s.waiting, of)
	}
	of.waiting = append(of.waiting, w)
	s.admit()
	s.mu.Unlock()

	half, cancel := WithinPart(ctx, 0, 1, 2)
	defer cancel()
	select {
	case <-w.admitted:
		return true
	case <-half.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(of.waiting, w); i >= 0 {
		s.leave(of, i)
		s.admit() // those behind it may have fewer calls
		return false
	}
	return true // meanwhile
}

// end counts calls that are in flight no more.
func (s *shares) end(namespace string, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(s.of[namespace], -calls)
	s.admit()
}

// fits reports whether calls may be in flight now. It needs the lock.
func (s *shares) fits(of *share, calls, most int) bool {
	free := most - s.inFlight - calls
	return s.inFlight == 0 || of.inFlight == 0 && free >= 0 || of.inFlight+calls <= 3*free
}

// count adds calls to those in flight. It needs the lock.
func (s *shares) count(of *share, calls int) {
	s.inFlight += calls
	of.inFlight += calls
}

// admit gives places to the calls that wait, in their order, until the next one does not fit. It needs the lock.
func (s *shares) admit() {
	for len(s.waiting) > 0 {
		of := slices.MinFunc(s.waiting, func(a, b *share) int { return a.inFlight - b.inFlight })
		w := of.waiting[0]
		if !s.fits(of, w.calls, w.most) {
			return
		}
		s.count(of, w.calls)
		if s.leave(of, 0); len(of.waiting) > 0 {
			i := slices.Index(s.waiting, of)
			s.waiting = append(slices.Delete(s.waiting, i, i+1), of)
		}
		close(w.admitted)
	}
}

// leave removes the waiter i of a share. It needs the lock.
func (s *shares) leave(of *share, i int) {
	if of.waiting = slices.Delete(of.waiting, i, i+1); len(of.waiting) == 0 {
		s.waiting = slices.DeleteFunc(s.waiting, func(other *share) bool { return other == of })
	}
}

// total returns the number of calls in flight.
func (s *shares) total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.inFlight)
}
