package events

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
)

// ring has the newest events, for streams.
type ring struct {
	places *access.Places // of streams

	mu      sync.Mutex
	last    int64                // the number of the newest event; guarded by mu
	forgot  map[string]int64     // the newest event of each namespace that was removed; guarded by mu
	byID    map[string]int64     // the numbers of events; guarded by mu
	streams map[*Stream]struct{} // guarded by mu
	closed  bool                 // guarded by mu

	list[numbered] // guarded by mu, but its bounds
}

// numbered is an event with its number.
type numbered struct {
	*Event
	n int64
}

// add adds e, unless the ring has it, in the place of the oldest events of the namespace that has most.
func (r *ring) add(e *Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.byID[e.ID]; known || r.most == 0 {
		return
	}
	r.last++
	r.byID[e.ID] = r.last
	r.insert(len(r.events), numbered{e, r.last})
	for r.over(0, 0) {
		r.forgetLocked()
	}
	for s := range r.streams {
		s.notify()
	}
}

// forgetLocked removes the oldest event of the namespace that has most.
func (r *ring) forgetLocked() {
	e := r.remove(r.ofMost(slices.All(r.events)))
	delete(r.byID, e.ID)
	r.forgot[e.Namespace] = e.n
	for s := range r.streams {
		if s.missed >= 0 && e.n >= s.next && s.filter.Matches(e.Event) {
			s.missed++
		}
	}
}

// fromLocked returns the index of the first event whose number is at least n.
func (r *ring) fromLocked(n int64) int {
	at, _ := slices.BinarySearchFunc(r.events, n, func(e numbered, n int64) int { return cmp.Compare(e.n, n) })
	return at
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

// MaxStreams is the maximum number of streams of a hub.
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
	after  string
	wake   chan struct{}

	next   int64 // the number of the first event that was not looked at; guarded by the mu of ring
	missed int64 // how many from there on were removed; -1: not known. Guarded by the mu of ring
}

// Subscribe returns a stream of the events that f selects. It begins behind the event with the id after, or from now on if
// after is empty. If no event with that id is kept that readers of f may see, it begins with a gap and all that are kept.
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
	if !r.places.Take(f.Share, 1) {
		r.mu.Unlock()
		return nil, ErrTooMany
	}
	r.streams[s] = struct{}{}
	s.next = r.last + 1
	r.mu.Unlock()
	if h.history != nil {
		_ = h.history.sync(ctx) // an outage is logged elsewhere
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mayKnow := Filter{Namespace: f.Namespace, Whole: f.Whole}
	switch at, ok := r.byID[after]; {
	case after == "":
		s.next, s.missed, s.after = r.last+1, 0, noEvent
		for _, e := range slices.Backward(r.events) {
			if mayKnow.Matches(e.Event) {
				s.after = e.ID
				break
			}
		}
	case ok && mayKnow.Matches(r.events[r.fromLocked(at)].Event) && r.forgot[f.Namespace] < at && r.forgot[""] < at:
		s.next, s.missed = at+1, 0
	default:
		s.next, s.missed = 0, -1
	}
	return s, nil
}

// noEvent is where a stream begins that no event precedes. It is the id of no event, so that a stream behind it has all events.
const noEvent = "0"

// After returns the id of the event behind which s begins if its reader has named none. The reader needs it if the
// connection breaks before the next event.
func (s *Stream) After() string { return s.after }

// Close ends s.
func (s *Stream) Close() {
	s.ring.mu.Lock()
	defer s.ring.mu.Unlock()
	if _, open := s.ring.streams[s]; open {
		delete(s.ring.streams, s)
		s.ring.places.Leave(s.filter.Share, 1)
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
	all := r.events[r.fromLocked(s.next):]
	part, upTo := all, r.last
	if len(part) > maxPart {
		part, upTo = part[:maxPart], part[maxPart-1].n
	}
	missed, s.missed, s.next = s.missed, 0, upTo+1
	for _, e := range part {
		if s.filter.Matches(e.Event) {
			events = append(events, e.Event)
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
