package report

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/window"
)

// Group joins the Reporters of one local memory. What is pending for a key may be with another Reporter than that of the
// engine that counts it: the first one restores all that a data directory has, and an engine that another one has replaced
// may still report. The zero value is ready. It is safe for concurrent use.
type Group struct {
	mu    sync.Mutex
	all   []*Reporter                      // guarded by mu; a slice is not changed once it is here
	bans  map[string]map[string]window.Ban // of the rules in force, by namespace and the identity of the space; guarded by mu
	rooms map[string]*room                 // by namespace; guarded by mu
}

func (g *Group) add(r *Reporter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(slices.Clip(g.all), r)
}

// remove removes r, and the bans of its namespace unless another Reporter has that, too.
func (g *Group) remove(r *Reporter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = slices.DeleteFunc(slices.Clone(g.all), func(other *Reporter) bool { return other == r })
	if !slices.ContainsFunc(g.all, func(other *Reporter) bool { return other.namespace == r.namespace }) {
		delete(g.bans, r.namespace)
		delete(g.rooms, r.namespace)
	}
}

// use gives g the bans of the rules in force in the namespace of r.
func (g *Group) use(r *Reporter, namespace string, of map[string]window.Ban) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bans == nil {
		g.bans = map[string]map[string]window.Ban{}
	}
	r.namespace, g.bans[namespace] = namespace, of
}

// ban returns the ban of the rule in force for an id, if that is known.
func (g *Group) ban(i id) (of window.Ban, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of, ok = g.bans[i.namespace][i.space]
	return of, ok
}

// room is what of a namespace waits for reports.
type room struct{ keys, words atomic.Int64 }

// enter counts e, which a table is about to have. It returns false if the namespace has no room, unless e is counted in
// any case.
func (g *Group) enter(e *entry, always bool) bool {
	g.mu.Lock()
	in := g.rooms[e.id.namespace]
	if in == nil {
		if g.rooms == nil {
			g.rooms = map[string]*room{}
		}
		in = &room{}
		g.rooms[e.id.namespace] = in
	}
	g.mu.Unlock()
	if !always && (in.keys.Load() >= MaxKeys || in.words.Load() >= maxWords) {
		return false
	}
	e.room = in
	in.keys.Add(1)
	e.resize()
	return true
}

// resize counts what e has become.
func (e *entry) resize() {
	const word, held = 8, 5 // bytes; words
	if e.room != nil {
		size := e.texts()/word + cap(e.state) + held*len(e.holds)
		e.room.words.Add(int64(size - e.words))
		e.words = size
	}
}

// leave undoes enter.
func (e *entry) leave() {
	e.room.keys.Add(-1)
	e.room.words.Add(-int64(e.words))
	e.room, e.words = nil, 0
}

// each calls f with the table of r, and then with those of the others in its group, each under its lock.
func (r *Reporter) each(f func(t *table, now window.Instant)) {
	r.group.mu.Lock()
	all := r.group.all
	r.group.mu.Unlock()
	r.with(f)
	for _, other := range all {
		if other != r {
			other.with(f)
		}
	}
}

func (r *Reporter) with(f func(t *table, now window.Instant)) {
	if r.restored != nil {
		<-r.restored // soon: memory, which has answered about the key, is loaded
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.table, r.now())
}
