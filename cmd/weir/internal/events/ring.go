package events

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
)

// ring has the newest events, for streams.
type ring struct {
	most, mostBytes int
	places          *access.Places // of streams

	mu      sync.Mutex
	events  []*Event             // guarded by mu; the oldest first
	first   int64                // the number of events[0]; guarded by mu
	bytes   int                  // guarded by mu
	byID    map[string]int       // guarded by mu; the numbers of events less than first are not in it
	streams map[*Stream]struct{} // guarded by mu
	closed  bool                 // guarded by mu
}

// add adds e, unless the ring has it.
func (r *ring) add(e *Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.byID[e.ID]; known || r.most == 0 {
		return
	}
	r.byID[e.ID] = int(r.first) + len(r.events)
	r.events = append(r.events, e)
	r.bytes += len(e.text)
	for len(r.events) > r.most || r.bytes > r.mostBytes {
		delete(r.byID, r.events[0].ID)
		r.bytes -= len(r.events[0].text)
		r.events[0] = nil
		r.events = r.events[1:]
		r.first++
	}
	for s := range r.streams {
		s.notify()
	}
}

// applied adds the events of a page of the history.
func (r *ring) applied(p kept.Page) {
	for _, text := range p.Values {
		if e, err := decode(text); err == nil { // what is removed has no text
			r.add(e)
		}
	}
}

// read reports whether there are streams.
func (r *ring) read() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.streams) > 0
}

// close ends all streams.
func (r *ring) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for s := range r.streams {
		s.notify()
	}
}

// MaxStreams is how many streams a hub has at most.
const MaxStreams = 100

// maxPart is how many events one call of [Stream.Next] looks at.
const maxPart = 256

// ErrTooMany is the error of a subscription when the caller gets none of [MaxStreams], and ErrEnded that of a stream when the hub
// stops.
var (
	ErrTooMany = errors.New("there are as many streams of events as one instance serves; close one, or ask another instance")
	ErrEnded   = errors.New("the service stops")
)

// Stream is a reader of events. It must be closed. Its methods must not be called concurrently.
type Stream struct {
	ring   *ring
	filter Filter
	next   int64
	lost   bool // what came after the last event is not known
	wake   chan struct{}
}

// Subscribe returns a stream of the events that f selects, after the one with the id after. If that is empty, it
// begins with what happens from now on, and if no event is kept with it that readers of f may see, with a gap and all that are.
func (h *Hub) Subscribe(ctx context.Context, f Filter, after string) (*Stream, error) {
	r := h.ring
	slices.Sort(f.Kinds)
	f.Kinds = slices.Compact(f.Kinds) // a caller can repeat them, and each event is compared with all
	s := &Stream{ring: r, filter: f, wake: make(chan struct{}, 1)}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, ErrEnded
	}
	if !r.places.Take(f.bound()) {
		r.mu.Unlock()
		return nil, ErrTooMany
	}
	r.streams[s] = struct{}{}
	s.next = r.first + int64(len(r.events))
	r.mu.Unlock()
	if h.history != nil {
		_ = h.history.sync(ctx) // an outage is logged elsewhere
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mayKnow := Filter{Namespace: f.Namespace, Whole: f.Whole}
	switch at, ok := r.byID[after]; {
	case after == "":
		s.next = r.first + int64(len(r.events))
	case ok && mayKnow.Matches(r.events[int64(at)-r.first]):
		s.next = int64(at) + 1
	default:
		s.next, s.lost = r.first, true
	}
	return s, nil
}

// Close ends s.
func (s *Stream) Close() {
	s.ring.mu.Lock()
	defer s.ring.mu.Unlock()
	if _, open := s.ring.streams[s]; open {
		delete(s.ring.streams, s)
		s.ring.places.Leave(s.filter.bound())
	}
}

// notify wakes Next.
func (s *Stream) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Next returns the next events, one at least, and before them how many were dropped because the stream was not
// read in time: -1 if that is not known. It waits for an event until ctx is done, and then returns its error.
func (s *Stream) Next(ctx context.Context) (events []*Event, missed int64, err error) {
	for {
		if events, missed, err = s.now(); len(events) > 0 || missed != 0 || err != nil {
			return events, missed, err
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-s.wake:
		}
	}
}

func (s *Stream) now() (events []*Event, missed int64, err error) {
	r := s.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.lost {
		s.lost, missed = false, -1
	}
	if s.next < r.first {
		missed, s.next = r.first-s.next, r.first
	}
	all := r.events[s.next-r.first:]
	for _, e := range all[:min(len(all), maxPart)] {
		s.next++
		if s.filter.Matches(e) {
			events = append(events, e)
		}
	}
	if len(events) == 0 && (len(all) > maxPart || len(all) > 0 && r.closed) {
		s.notify()
	}
	if len(all) == 0 && r.closed && missed == 0 {
		return nil, 0, ErrEnded
	}
	return events, missed, nil
}
