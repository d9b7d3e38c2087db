package events

import (
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

// entry is an event in a register.
type entry struct {
	size      int    // of the text
	namespace string // in an outbox
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
		if s.waiting[i].Namespace == most {
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
			now := entry{size: len(p.Values[i])}
			if s.keep == 0 {
				if e, err := decode(p.Values[i]); err == nil {
					now.namespace = e.Namespace
				}
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
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			s.writeLast(context.WithoutCancel(ctx))
			return
		case <-tick.C:
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
	over := int64(0)
	err := s.follower.Change(ctx, func() (fields, values []string, err error) {
		fresh, size := 0, s.bytes
		over = 0
		var of map[string]int // how many each namespace has, once there are too many
		rest := s.order       // of which the last ones made room for others
		for _, e := range events {
			if _, has := s.has[e.ID]; has {
				continue
			}
			fits := func() bool { return s.keep > 0 || len(s.order)+fresh < maxOutbox && size+len(e.text) <= outboxSize }
			if !fits() && of == nil {
				of = s.shares(values)
			}
			for !fits() && hasShare(of[e.Namespace], len(s.order)+fresh, len(of)) {
				most, id := mostOf(of), ""
				for id == "" && len(rest) > 0 {
					if last := rest[len(rest)-1]; s.has[last].namespace == most {
						id = last
					}
					rest = rest[:len(rest)-1]
				}
				if id == "" {
					break
				}
				fields, values = append(fields, id), append(values, "")
				over, fresh, size, of[most] = over+1, fresh-1, size-s.has[id].size, of[most]-1
			}
			if !fits() {
				over++
				continue
			}
			fresh, size = fresh+1, size+len(e.text)
			if of != nil {
				of[e.Namespace]++
			}
			fields, values = append(fields, e.ID), append(values, string(e.text))
		}
		if old := len(s.order) + fresh - s.keep; s.keep > 0 && old > 0 {
			for _, id := range s.order[:min(old, len(s.order))] {
				fields, values = append(fields, id), append(values, "")
			}
		}
		fields, values = unique(fields, values)
		return fields, values, nil
	})
	if err == nil {
		s.hub.dropped.Add(over)
		s.mu.Lock()
		for _, e := range events {
			s.leave(e)
		}
		s.waiting = append([]*Event(nil), s.waiting[len(events):]...)
		s.mu.Unlock()
	}
	return err
}

// shares returns how many events of each namespace are in the register and among texts that are to be written.
func (s *shelf) shares(texts []string) map[string]int {
	of := map[string]int{}
	for _, e := range s.has {
		of[e.namespace]++
	}
	for _, text := range texts {
		if e, err := decode(text); err == nil {
			of[e.Namespace]++
		}
	}
	return of
}

// unique returns fields without those that are there twice.
func unique(fields, values []string) ([]string, []string) {
	seen := map[string]bool{}
	n := 0
	for i, f := range fields {
		if !seen[f] {
			seen[f] = true
			fields[n], values[n] = f, values[i]
			n++
		}
	}
	return fields[:n], values[:n]
}

// remove removes ids.
func (s *shelf) remove(ctx context.Context, ids []string) error {
	return s.follower.Change(ctx, func() (fields, values []string, err error) {
		for _, id := range ids {
			if _, has := s.has[id]; has {
				fields, values = append(fields, id), append(values, "")
			}
		}
		return fields, values, nil
	})
}
