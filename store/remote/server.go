package remote

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
)

// The reasons of outages. The packages of the stores explain them.
const (
	Late        store.Reason = "late"
	Refused     store.Reason = "refused"
	CircuitOpen store.Reason = "circuit-open"
	Busy        store.Reason = "busy"
	Full        store.Reason = "full"
	Foreign     store.Reason = "foreign"
	Loading     store.Reason = "loading"
	Moving      store.Reason = "moving"
	ReadOnly    store.Reason = "read-only"
	Closed      store.Reason = "closed"
	Unconfirmed store.Reason = "unconfirmed" // see [store.OutageError]
	Unknown     store.Reason = "unknown"
)

// The errors of calls that were not sent, and of a connection that has ended.
var (
	ErrUnavailable = errors.New("the server has not answered lately")
	ErrBusy        = errors.New("too many calls wait for the server")
	ErrGone        = errors.New("the connection has broken")
)

// Node has the numbers of one server.
type Node struct {
	// Addr is the address of the server, or the name of a primary that can move.
	Addr string

	// Unavailable is true while the server gets no calls, because it has not answered
	// lately or there is no connection. Interruptions is how often that began.
	Unavailable   bool
	Interruptions int64

	// InFlight is the number of calls that wait for the server now.
	InFlight int64

	// Outages is the number of calls, since the store was opened, that the server did not
	// answer or that were not sent to it, by reason. It has all reasons, also those
	// that did not occur.
	Outages map[store.Reason]int64
}

// Change is the start or the end of a time in which a server gets no calls.
type Change struct {
	Addr string
	Err  *store.OutageError // at the start: why; nil at the end
	Gone bool               // the end, because the server has left its cluster

	// Lasted is the time since the start, and Missed the number of outages since
	// then. Both are set at the end.
	Lasted time.Duration
	Missed int64
}

// Server is what a store knows of the availability of one of its servers. Its fields are set
// before its use. It is safe for concurrent use.
type Server struct {
	Breaker Breaker
	Addr    string

	// Connected reports whether there is a connection.
	Connected func() bool

	// Outage returns the outage that an error is. Changed is called by [Server.Report], and by
	// nothing else.
	Outage  func(error) *store.OutageError
	Changed func(Change)

	calls         shares
	interruptions atomic.Int64
	losses        atomic.Uint64 // of the last connection

	counting sync.Mutex
	outages  map[store.Reason]int64 // guarded by counting

	reporting sync.Mutex    // held while Changed is called
	since     time.Duration // when the server became unavailable; 0: it is not; guarded by reporting
	missed    int64         // the outages by then; guarded by reporting
	opened    uint64        // the openings of the breaker by the last report; guarded by reporting
	lost      uint64        // the losses by then; guarded by reporting
}

// Unavailable reports whether the server gets no calls, because it has not answered
// lately or there is no connection.
func (s *Server) Unavailable() bool { return s.Breaker.Open() || !s.Connected() }

// Begin counts calls of a namespace as in flight until [Server.End]. There are most places, of which one namespace
// leaves some to others; calls that are alone can be more. They wait for their places for at most half of the time
// that ctx has left. Then the error is [ErrBusy], or [ErrUnavailable] if the breaker is open.
func (s *Server) Begin(ctx context.Context, namespace string, calls, most int) error {
	began := s.calls.begin(ctx, namespace, calls, most)
	switch {
	case s.Breaker.Open():
		if began {
			s.End(namespace, calls)
		}
		return ErrUnavailable
	case !began:
		return ErrBusy
	}
	return nil
}

// End counts calls of a namespace that are in flight no more.
func (s *Server) End(namespace string, calls int) { s.calls.end(namespace, calls) }

// Heard tells the breaker whether the server has answered calls that were sent at began, in the
// context of their decision. It reports whether the breaker has opened. What is no answer is a time-out only if the
// decision had at least half of timeout for it: else the caller had less time, or another server has used it up.
func (s *Server) Heard(ctx context.Context, answered bool, began, timeout time.Duration) (opened bool) {
	if answered {
		s.Breaker.Answered()
		return false
	}
	now := Elapsed()
	return TimedOut(ctx) && now-began >= timeout/2 && s.Breaker.TimedOut(began, now)
}

// Count counts the outage of one call.
func (s *Server) Count(r store.Reason) {
	s.counting.Lock()
	defer s.counting.Unlock()
	if s.outages == nil {
		s.outages = map[store.Reason]int64{}
	}
	s.outages[r]++
}

// counts returns how often each reason has occurred, and the number of all outages.
func (s *Server) counts() (byReason map[store.Reason]int64, sum int64) {
	s.counting.Lock()
	defer s.counting.Unlock()
	byReason = map[store.Reason]int64{}
	for _, r := range []store.Reason{Late, Refused, CircuitOpen, Busy, Full, Foreign, Loading, Moving, ReadOnly, Closed, Unconfirmed, Unknown} {
		byReason[r] = s.outages[r]
		sum += s.outages[r]
	}
	return byReason, sum
}

// Node returns the numbers of the server.
func (s *Server) Node() Node {
	n := Node{Addr: s.Addr, Unavailable: s.Unavailable(), Interruptions: s.interruptions.Load(), InFlight: s.calls.total()}
	n.Outages, _ = s.counts()
	return n
}

// Lost counts the loss of the last connection, so that the next report passes it on even if
// there is another one by then.
func (s *Server) Lost() { s.losses.Add(1) }

// Report passes on that the server became unavailable, or that it answers again, or both:
// an answer may have closed the breaker, or a new connection taken the place of a lost
// one, since the last report. err is why there is no connection, if that is known.
func (s *Server) Report(err error) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	openings, losses, out := (s.Breaker.changes.Load()+1)/2, s.losses.Load(), s.Unavailable()
	opened, gone := openings != s.opened, losses != s.lost
	s.opened, s.lost = openings, losses
	if s.since == 0 && (out || opened || gone) {
		s.since = Elapsed()
		_, s.missed = s.counts()
		s.interruptions.Add(1)
		why := ErrGone
		switch {
		case opened:
			why = ErrUnavailable
		case out && err != nil:
			why = err
		}
		s.change(Change{Err: s.Outage(why)})
	}
	if s.since != 0 && !out {
		s.end(Change{})
	}
}

// Leave passes on that the server has left its cluster.
func (s *Server) Leave() {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if s.since != 0 {
		s.end(Change{Gone: true})
	}
}

// end passes on that the time is over in which the server got no calls. It needs reporting.
func (s *Server) end(c Change) {
	_, missed := s.counts()
	c.Lasted, c.Missed = Elapsed()-s.since, missed-s.missed
	s.since = 0
	s.change(c)
}

func (s *Server) change(c Change) {
	if c.Addr = s.Addr; s.Changed != nil {
		s.Changed(c)
	}
}
