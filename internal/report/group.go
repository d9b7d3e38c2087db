package report

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Group joins the Reporters of one local memory. What is pending for a key may be with another Reporter than that of the
// engine that counts it: the first one restores all that a data directory has, and an engine that another one has replaced
// may still report. They report in turns, and share the room for what is pending. The zero value is ready. It is safe for
// concurrent use.
type Group struct {
	mu    sync.Mutex
	rooms map[string]*room // by namespace; guarded by mu
	whole amount           // of all rooms

	made     sync.Once     // with the first Reporter
	turns    chan struct{} // full while a Reporter has its turn
	restored chan struct{} // closed when one has what the last process saved
	claimed  atomic.Bool   // one restores it
}

// room is what a group has of a namespace.
type room struct {
	reporters []*Reporter           // with its rules, or with what waits for reports; guarded by Group.mu; a slice is not changed once it is here
	bans      map[string]window.Ban // of the rules in force, by the identity of the space; guarded by Group.mu
	amount                          // of what waits for reports
	whole     *amount               // of all namespaces
}

type amount struct{ keys, words atomic.Int64 }

// room returns the room of a namespace, which has r then. It needs mu.
func (g *Group) room(namespace string, r *Reporter) *room {
	in := g.rooms[namespace]
	if in == nil {
		if g.rooms == nil {
			g.rooms = map[string]*room{}
		}
		in = &room{whole: &g.whole}
		g.rooms[namespace] = in
	}
	if !slices.Contains(in.reporters, r) {
		in.reporters = append(slices.Clip(in.reporters), r)
		r.namespaces = append(r.namespaces, namespace)
	}
	return in
}

// remove removes r, in which nothing is pending any more, and the rooms that only r has.
func (g *Group) remove(r *Reporter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, namespace := range r.namespaces {
		in := g.rooms[namespace]
		in.reporters = slices.DeleteFunc(slices.Clone(in.reporters), func(other *Reporter) bool { return other == r })
		if len(in.reporters) == 0 {
			delete(g.rooms, namespace)
		}
	}
	r.namespaces = nil
}

// use gives g the bans of the rules in force in the namespace of r.
func (g *Group) use(r *Reporter, namespace string, of map[string]window.Ban) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room(namespace, r).bans = of
}

// ban returns the ban of the rule in force for an id, if that is known.
func (g *Group) ban(i id) (of window.Ban, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if in := g.rooms[i.namespace]; in != nil {
		of, ok = in.bans[i.space]
	}
	return of, ok
}

// reporters returns those that may have something of a namespace.
func (g *Group) reporters(namespace string) []*Reporter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if in := g.rooms[namespace]; in != nil {
		return in.reporters
	}
	return nil
}

func (in *room) add(keys, words int) {
	for _, a := range [...]*amount{&in.amount, in.whole} {
		a.keys.Add(int64(keys))
		a.words.Add(int64(words))
	}
}

// full reports whether a namespace has three times what is free, or more. So one alone has at most three quarters of all, two
// have three sevenths each, and there is room for a new one.
func (in *room) full() bool {
	full := func(has, taken *atomic.Int64, alone int64) bool { return has.Load() >= 3*(alone+alone/3-taken.Load()) }
	return full(&in.keys, &in.whole.keys, MaxKeys) || full(&in.words, &in.whole.words, maxWords)
}

// enter counts e, which the table of r is about to have. It returns false if the namespace has no room, unless e is counted in
// any case.
func (r *Reporter) enter(e *entry, always bool) bool {
	r.group.mu.Lock()
	in := r.group.room(e.id.namespace, r)
	r.group.mu.Unlock()
	if !always && in.full() {
		return false
	}
	e.room = in
	in.add(1, 0)
	e.resize()
	return true
}

// resize counts what e has become.
func (e *entry) resize() {
	const word, held = 8, 5 // bytes; words
	if e.room == nil {
		return
	}
	if size := e.texts()/word + cap(e.state) + held*len(e.holds); size != e.words {
		e.room.add(0, size-e.words)
		e.words = size
	}
}

// leave undoes enter.
func (e *entry) leave() {
	e.room.add(-1, -e.words)
	e.room, e.words = nil, 0
}

// each calls f with the table of r, and then with those of the others that may have something of op's namespace, each under its
// lock. It waits until what the last process saved is there: see Restored.
func (r *Reporter) each(op *store.Op, f func(t *table, now window.Instant)) {
	if r.side != nil {
		select {
		case <-r.group.restored:
		case <-r.stop:
		}
	}
	r.with(f)
	for _, other := range r.group.reporters(op.Space.Namespace()) {
		if other != r {
			other.with(f)
		}
	}
}

func (r *Reporter) with(f func(t *table, now window.Instant)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.table, r.now())
}
