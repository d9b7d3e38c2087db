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
	waiting list[*Event] // to be written; guarded by mu
	writing []*Event     // what is written next, until it is; guarded by mu

	register list[entry]     // what is in it, in order; used in calls of the follower
	has      map[string]bool // the ids in register
}

// entry is an event of a register.
type entry struct {
	id, namespace string
	text          string // empty once it is in the register
	size          int    // of the text
}

func (e entry) space() string { return e.namespace }
func (e entry) bytes() int    { return e.size }

func newShelf(h *Hub, s kept.Store, name string, keep int) *shelf {
	f := &shelf{hub: h, keep: keep, waiting: newList[*Event](maxWaiting, outboxSize), register: newList[entry](cmp.Or(keep, maxOutbox), outboxSize), has: map[string]bool{}}
	f.follower = kept.Follower{Store: s, Name: name, Apply: f.applied}
	return f
}

// put adds e to what waits to be written.
func (s *shelf) put(e *Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.dropped.Add(s.waiting.put(e))
}

// some returns what is written next. Namespaces take turns, so that a flood of one does not delay the events of others.
func (s *shelf) some() []*Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.writing) == 0 {
		if len(s.waiting.events) > writeMost {
			inTurn(s.waiting.events)
		}
		for len(s.writing) < writeMost && len(s.waiting.events) > 0 {
			s.writing = append(s.writing, s.waiting.remove(0))
		}
	}
	return s.writing
}

// applied implements the Apply of a follower.
func (s *shelf) applied(p kept.Page) {
	if p.Again {
		s.register = newList[entry](s.register.most, s.register.mostBytes)
		clear(s.has)
	}
	removed := false
	for i, id := range p.Fields {
		switch {
		case p.Values[i] == "":
			removed = removed || s.has[id]
			delete(s.has, id)
		case !s.has[id]:
			now := entry{id: id, size: len(p.Values[i])}
			if e, err := decode(p.Values[i]); err == nil {
				now.namespace = e.Namespace
			}
			s.has[id] = true
			s.register.insert(len(s.register.events), now)
		}
	}
	if removed {
		s.register.removeFunc(func(e entry) bool { return !s.has[e.id] })
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
		s.writing = nil
		s.mu.Unlock()
	}
	return err
}

// changes returns what puts events into the register, and how many events nobody gets because of that. If there is no room for
// all, those of the namespace that has most make way: the oldest of the history, the newest of an outbox.
func (s *shelf) changes(events []*Event) (fields, values []string, dropped int64) {
	all := s.register.clone()
	old := len(all.events) // of all, those in the register
	for _, e := range events {
		same := func(other entry) bool { return other.id == e.ID }
		if !s.has[e.ID] && !slices.ContainsFunc(all.events[old:], same) {
			all.insert(len(all.events), entry{id: e.ID, namespace: e.Namespace, text: string(e.text), size: len(e.text)})
		}
	}
	for all.over(0, 0) {
		order := slices.All(all.events)
		if s.keep == 0 {
			order = slices.Backward(all.events)
		}
		at := all.ofMost(order)
		e := all.remove(at)
		if s.keep == 0 || at >= old {
			dropped++
		}
		if at < old {
			fields, values, old = append(fields, e.id), append(values, ""), old-1
		}
	}
	for _, e := range all.events[old:] {
		fields, values = append(fields, e.id), append(values, e.text)
	}
	return fields, values, dropped
}

// remove removes ids.
func (s *shelf) remove(ctx context.Context, ids []string) error {
	return s.follower.Change(ctx, "", func() (fields, values []string, err error) {
		for _, id := range ids {
			if s.has[id] {
				fields, values = append(fields, id), append(values, "")
			}
		}
		return fields, values, nil
	})
}
