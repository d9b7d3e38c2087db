package events

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/kept"
)

const (
	writeEvery = 250 * time.Millisecond // the interval between two writes to a register
	writeMost  = 200                    // events of one write
	maxWaiting = 10_000                 // events that wait to be written
	maxOutbox  = 10_000                 // events in an outbox
	outboxSize = 16 << 20               // bytes of their texts
	idlePolls  = 8                      // intervals between two reads by those who only watch
)

// shelf is a register with events under their ids: the history, or the outbox of a webhook.
type shelf struct {
	hub      *Hub
	keep     int // the most events, of which the oldest are removed; 0: whoever delivers them removes them
	follower kept.Follower
	apply    func(kept.Page) // is given each page; nil: nothing is
	fill     func()          // puts what is to be written next; nil: nothing

	mu      sync.Mutex
	waiting []*Event       // to be written; guarded by mu
	size    int            // of their texts; guarded by mu
	of      map[string]int // how many of them each namespace has; guarded by mu

	order []string         // the ids in the register; used in calls of the follower
	has   map[string]entry // the same
	bytes int              // the sum of their sizes
}

// entry is an event of a register.
type entry struct {
	id, namespace string
	text          string // empty once it is in the register
	size          int    // of the text
}

func newShelf(h *Hub, s kept.Store, name string, keep int) *shelf {
	f := &shelf{hub: h, keep: keep, of: map[string]int{}, has: map[string]entry{}}
	f.follower = kept.Follower{Store: s, Name: name, Apply: f.applied}
	return f
}

// put adds e to what waits to be written, in the place of events of the namespace that has most if there are too many.
func (s *shelf) put(e *Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) >= maxWaiting || s.size+len(e.text) > outboxSize {
		s.hub.dropped.Add(1)
		if !hasShare(s.of[e.Namespace], len(s.waiting), len(s.of)) || !s.dropOfMost() {
			return
		}
	}
	s.waiting, s.size = append(s.waiting, e), s.size+len(e.text)
	s.of[e.Namespace]++
}

// dropOfMost drops the last event of the namespace that has most, unless it may be written now. It needs mu.
func (s *shelf) dropOfMost() bool {
	most := mostOf(s.of)
	for i := len(s.waiting) - 1; i >= writeMost; i-- {
		if s.of[s.waiting[i].Namespace] == most {
			s.leave(s.waiting[i])
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return true
		}
	}
	return false
}

// leave counts e as one that waits no longer. It needs mu.
func (s *shelf) leave(e *Event) {
	s.size -= len(e.text)
	if s.of[e.Namespace]--; s.of[e.Namespace] == 0 {
		delete(s.of, e.Namespace)
	}
}

func (s *shelf) some() []*Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[:min(len(s.waiting), writeMost)]
}

// applied implements the Apply of a follower.
func (s *shelf) applied(p kept.Page) {
	if p.Again {
		s.order, s.bytes = nil, 0
		clear(s.has)
	}
	removed := false
	for i, id := range p.Fields {
		was, had := s.has[id]
		switch {
		case p.Values[i] == "":
			delete(s.has, id)
			s.bytes -= was.size
			removed = removed || had
		case !had:
			now := entry{id: id, size: len(p.Values[i])}
			if e, err := decode(p.Values[i]); err == nil {
				now.namespace = e.Namespace
			}
			s.has[id] = now
			s.bytes += now.size
			s.order = append(s.order, id)
		}
	}
	if removed {
		order := s.order[:0]
		for _, id := range s.order {
			if _, has := s.has[id]; has {
				order = append(order, id)
			}
		}
		clear(s.order[len(order):])
		s.order = order
	}
	if s.apply != nil {
		s.apply(p)
	}
}

// sync reads what others have written.
func (s *shelf) sync(ctx context.Context) error { return s.follower.Sync(ctx) }

// run writes what waits, and reads what others write: at each interval if reads reports true, and now and then
// otherwise. It ends after ctx is done, with a last write.
func (s *shelf) run(ctx context.Context, reads func() bool) {
	tick := time.Tick(writeEvery)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			s.writeLast(context.WithoutCancel(ctx))
			return
		case <-tick:
		}
		s.gather()
		if len(s.some()) > 0 {
			_ = s.write(ctx) // stays, and the store's outage is logged elsewhere
		} else if reads() || s.keep == 0 && n%idlePolls == 0 {
			_ = s.sync(ctx)
		}
	}
}

func (s *shelf) gather() {
	if s.fill != nil {
		s.fill()
	}
}

// writeLast writes what waits, for a second at most.
func (s *shelf) writeLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.gather()
	for ctx.Err() == nil && len(s.some()) > 0 && s.write(ctx) == nil {
	}
}

// write writes some of what waits.
func (s *shelf) write(ctx context.Context) error {
	events := s.some()
	var dropped int64
	err := s.follower.Change(ctx, "", func() (fields, values []string, err error) {
		fields, values, dropped = s.changes(events)
		return fields, values, nil
	})
	if err == nil {
		s.hub.dropped.Add(dropped)
		s.mu.Lock()
		for _, e := range events {
			s.leave(e)
		}
		s.waiting = append([]*Event(nil), s.waiting[len(events):]...)
		s.mu.Unlock()
	}
	return err
}

// changes returns what puts events into the register, and how many events nobody gets because of that. If there is no room for
// all, those of the namespace that has most make way: the oldest of the history, the newest of an outbox.
func (s *shelf) changes(events []*Event) (fields, values []string, dropped int64) {
	var all []entry
	of, size := map[string]int{}, s.bytes
	for _, id := range s.order {
		all = append(all, s.has[id])
	}
	old := len(all) // of all, those in the register
	for _, e := range events {
		same := func(other entry) bool { return other.id == e.ID }
		if _, has := s.has[e.ID]; !has && !slices.ContainsFunc(all[old:], same) {
			all = append(all, entry{id: e.ID, namespace: e.Namespace, text: string(e.text), size: len(e.text)})
			size += len(e.text)
		}
	}
	for _, e := range all {
		of[e.namespace]++
	}
	for len(all) > cmp.Or(s.keep, maxOutbox) || s.keep == 0 && size > outboxSize {
		most := mostOf(of)
		ofMost := func(e entry) bool { return of[e.namespace] == most }
		at := slices.IndexFunc(all, ofMost)
		if s.keep == 0 {
			for at = len(all) - 1; !ofMost(all[at]); at-- {
			}
		}
		e := all[at]
		if s.keep == 0 || at >= old {
			dropped++
		}
		if all = slices.Delete(all, at, at+1); at < old {
			fields, values, old = append(fields, e.id), append(values, ""), old-1
		}
		of[e.namespace], size = of[e.namespace]-1, size-e.size
	}
	for _, e := range all[old:] {
		fields, values = append(fields, e.id), append(values, e.text)
	}
	return fields, values, dropped
}

// remove removes ids.
func (s *shelf) remove(ctx context.Context, ids []string) error {
	return s.follower.Change(ctx, "", func() (fields, values []string, err error) {
		for _, id := range ids {
			if _, has := s.has[id]; has {
				fields, values = append(fields, id), append(values, "")
			}
		}
		return fields, values, nil
	})
}
