package events

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/store"
)

const (
	maxHolds   = 100_000         // takes with holds that are followed
	holdGrace  = 5 * time.Second // for what other instances have to say about a hold
	holdsEvery = time.Second

	endedName = "events-holds" // the register of holds that ended on another instance
	endedKeep = 5000           // entries of it, each with up to endedMost holds
	endedMost = 100
)

// holds follows the holds of the takes that this instance has decided, until they are settled or cancelled. With a
// shared store, an instance that ends or renews a hold which it does not follow writes that to a register, which
// others read before they report that a hold expired.
type holds struct {
	hub   *Hub
	ended *shelf // nil: no other instance ends holds

	mu    sync.Mutex
	all   map[[12]byte]*take // guarded by mu
	of    shares             // of all; guarded by mu
	queue byEnd              // guarded by mu
	notes []byte             // what ended here and is followed elsewhere: for each hold its ID and a verb; guarded by mu
}

// take is a take that holds.
type take struct {
	id    [12]byte
	name  string // of the namespace
	rules []heldIn
	end   time.Time // of the hold that ends first
	at    int       // in the queue
}

// heldIn is a hold in one rule.
type heldIn struct {
	rule   string
	key    shownKey // not the key, which takes memory that the counters do not need
	hits   int64
	length time.Duration
	end    time.Time
}

// follows reports whether there are takes whose holds h follows.
func (h *holds) follows() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all) > 0
}

func newHolds(h *Hub) *holds { return &holds{hub: h, all: map[[12]byte]*take{}, of: shares{}} }

// Ended notes a settle, a cancel or a renewal that has found the hold with an id, or may have. It implements
// hook.HoldObserver.
func (w *Watcher) Ended(verb store.Verb, id [12]byte) {
	if w == nil || w.hub.holds == nil {
		return
	}
	h := w.hub.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.all[id]
	switch {
	case t == nil:
		if h.ended != nil {
			h.notes = append(append(h.notes, id[:]...), byte(verb))
			if len(h.notes) >= endedMost*note {
				h.putNotes()
			}
		}
	case verb == store.Renew:
		t.renew(time.Now())
		heap.Fix(&h.queue, t.at)
	default:
		h.remove(t)
	}
}

// remove stops following t. It needs mu.
func (h *holds) remove(t *take) {
	heap.Remove(&h.queue, t.at)
	delete(h.all, t.id)
	h.of.add(t.name, -1)
}

// note is the size of a note in bytes.
const note = 12 + 1

// fill puts the notes into the register, before it is written.
func (h *holds) fill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.notes) > 0 {
		h.putNotes()
	}
}

// putNotes puts the notes, of which there are some, into the register as one entry. It needs mu.
func (h *holds) putNotes() {
	field := string(h.notes[:note]) + strconv.FormatInt(time.Now().UnixNano(), 36) // each renewal is another
	h.ended.put(&Event{ID: field, text: h.notes})
	h.notes = nil
}

// held follows the holds of a take.
func (h *holds) held(name string, d *weir.Decision) {
	t := &take{id: d.Receipt.Take.ID, name: name}
	for i := range d.Usages {
		u := &d.Usages[i]
		r := top.RuleOf(d.Rules, u.Rule)
		if !u.Held || r == nil {
			continue
		}
		length := cmp.Or(r.Hold, r.Window.Length)
		t.rules = append(t.rules, heldIn{rule: strings.Clone(u.Rule), key: h.hub.show(u.Key), hits: u.Hits, length: length})
	}
	if len(t.rules) == 0 {
		return
	}
	h.follow(t)
}

// follow follows t, in the place of a take of the namespace that has most if there are too many.
func (h *holds) follow(t *take) {
	t.renew(time.Now())
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) >= maxHolds {
		h.hub.dropped.Add(1)
		if !h.of.below(t.name, len(h.all)) {
			return
		}
		h.removeOfMost()
	}
	h.all[t.id] = t
	h.of.add(t.name, 1)
	heap.Push(&h.queue, t)
}

// removeOfMost stops following a take of the namespace that has most: one of those that end last. It needs mu.
func (h *holds) removeOfMost() {
	most := h.of.most()
	for _, t := range slices.Backward(h.queue) {
		if t.name == most {
			h.remove(t)
			return
		}
	}
}

// renew sets the ends of t.
func (t *take) renew(now time.Time) {
	for i := range t.rules {
		t.rules[i].end = now.Add(t.rules[i].length)
	}
	t.end = slices.MinFunc(t.rules, func(a, b heldIn) int { return a.end.Compare(b.end) }).end
}

// run reports holds that have ended, until ctx is done.
func (h *holds) run(ctx context.Context) {
	tick := time.Tick(holdsEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick:
			h.expire(ctx, now)
		}
	}
}

// expire reports the holds that ended before now.
func (h *holds) expire(ctx context.Context, now time.Time) {
	before := now
	if h.ended != nil {
		before = now.Add(-holdGrace)
	}
	h.mu.Lock()
	due := len(h.queue) > 0 && h.queue[0].end.Before(before)
	h.mu.Unlock()
	if !due || h.ended != nil && h.ended.sync(ctx) != nil {
		return // what others have ended is in Ended by now, unless the store does not answer
	}
	for _, e := range h.over(before) {
		h.hub.add(e.Event, e.key, e.id)
	}
}

// expired is the event of a hold that ended, without its key.
type expired struct {
	*Event
	key shownKey
	id  string
}

// over returns the events of holds that ended before an instant, and follows these no longer.
func (h *holds) over(before time.Time) (all []expired) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.queue) > 0 && h.queue[0].end.Before(before) {
		t := h.queue[0]
		for i := 0; i < len(t.rules); {
			r := t.rules[i]
			if !r.end.Before(before) {
				i++
				continue
			}
			t.rules = slices.Delete(t.rules, i, i+1)
			e := &Event{Kind: HoldExpired, Time: r.end, Data: Data{Namespace: t.name, Rule: r.rule, Hits: r.hits}}
			all = append(all, expired{e, r.key, string(t.id[:])})
		}
		if len(t.rules) == 0 {
			h.remove(t)
			continue
		}
		t.end = slices.MinFunc(t.rules, func(a, b heldIn) int { return a.end.Compare(b.end) }).end
		heap.Fix(&h.queue, 0)
	}
	return all
}

// applied stops following the holds that ended at other instances, and moves the ends of those that were renewed there.
func (h *holds) applied(p kept.Page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, notes := range p.Values { // none, of an entry that was removed
		for ; len(notes) >= note; notes = notes[note:] {
			switch t := h.all[[12]byte([]byte(notes[:note-1]))]; {
			case t == nil:
			case store.Verb(notes[note-1]) == store.Renew:
				t.renew(time.Now()) // later than it was: a hold is rather reported late than too early
				heap.Fix(&h.queue, t.at)
			default:
				h.remove(t)
			}
		}
	}
}

// byEnd is a heap of takes, the one that ends first on top.
type byEnd []*take

func (b byEnd) Len() int           { return len(b) }
func (b byEnd) Less(i, j int) bool { return b[i].end.Before(b[j].end) }
func (b byEnd) Swap(i, j int)      { b[i], b[j] = b[j], b[i]; b[i].at, b[j].at = i, j }
func (b *byEnd) Push(x any)        { t := x.(*take); t.at = len(*b); *b = append(*b, t) }
func (b *byEnd) Pop() any {
	last := len(*b) - 1
	t := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return t
}
