package memstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// place is where the key of one op is, and what the op asks there. Its methods
// ask for the lock of its shard.
type place struct {
	table *table
	shard *shard
	limit *window.Compiled
	key   fingerprint
	read  moment         // the call's reading of the clock
	now   window.Instant // what it is for the op
	hits  window.Hits

	// Where find found the key, or where it would go; nil before there is a
	// segment. Good until the shard changes.
	segment *segment
	slot    *slot
	known   bool

	reserved bool // the table has counted the key, which is not there yet

	// In a call of several ops:
	op     *store.Op
	index  int  // of the op in it
	shared bool // another op has the same shard
}

// find looks the key up.
func (p *place) find() { p.segment, p.slot, p.known = p.shard.find(p.key) }

// findAgain looks the key up where another op of the call may have changed the
// shard since find did.
func (p *place) findAgain() {
	if p.shared {
		p.find()
	}
}

// state is the state that find found.
func (p *place) state() window.State {
	if !p.known {
		return nil
	}
	return p.segment.stateOf(p.slot)
}

// date sets the instant of the op, once its shard is locked: the key may have
// expired and been reclaimed while the call waited for the lock, and what was
// read before is then too early for what was forgotten.
func (p *place) date(c *clock) { p.now = c.floored(p.read).of(p.table.onWall) }

// reserve counts a key for an op that may add one. It is false when the table
// is full. It follows find.
func (p *place) reserve(s *Store, most int64) bool {
	if p.hits.N == 0 {
		return true
	}
	if p.known {
		if p.shared {
			p.expire(&s.clock)
		}
		return true
	}
	t := p.table
	p.reserved = t.reserve(most)
	if !p.reserved && t.reclaim(p.shard, p.segment, p.key, s.clock.expiry(p.read, t)) {
		p.find()
		p.reserved = t.reserve(most)
	}
	if !p.reserved {
		t.full.Add(1)
		s.full.Add(1)
	}
	return p.reserved
}

// expire drops the key where it has expired, and reserves its room: otherwise
// another op of the call might reclaim it, and count on that room too.
func (p *place) expire(c *clock) {
	e := c.expiry(p.read, p.table)
	if _, over := e.of(p.state()); !over {
		return
	}
	p.shard.remove(p.segment, p.key)
	e.raise()
	p.find()
	p.reserved = true
}

// release gives back what was reserved and not used.
func (p *place) release() {
	if p.reserved {
		p.table.keys.Add(-1)
		p.reserved = false
	}
}

// look asks without counting. It follows find.
func (p *place) look(r *window.Result) { *r = p.limit.Check(p.state(), p.now, p.hits) }

// apply runs verb on a state.
func (p *place) apply(verb store.Verb, state window.State, r *window.Result) window.State {
	switch verb {
	case store.Take:
		state, *r = p.limit.Take(state, p.now, p.hits)
	case store.Record:
		state, *r = p.limit.Record(state, p.now, p.hits)
	default:
		state, *r = p.limit.Refund(state, p.now, p.hits)
	}
	return state
}

// room is how many words the state may need for verb.
func (p *place) room(verb store.Verb, state window.State) int {
	switch verb {
	case store.Take:
		return p.limit.TakeRoom(state, p.hits)
	case store.Record:
		return p.limit.Room(state, p.hits)
	default:
		return 0
	}
}

// count runs verb on the key: in its block when what it becomes fits there,
// and else on a scratch state, from which it gets a new block. It follows find.
func (s *Store) count(p *place, verb store.Verb, r *window.Result) {
	if p.hits.N == 0 {
		p.look(r)
		return
	}
	state := p.state()
	room := p.room(verb, state)
	switch {
	case room <= cap(state):
		s.countInPlace(p, verb, state, r)
		return
	case room <= len(p.shard.scratch):
		s.countApart(p, verb, append(p.shard.scratch[:0], state...), r)
		return
	}
	own := &s.scratch[p.key.shard(s.shards)]
	scratch := own.Swap(nil)
	if scratch == nil {
		scratch = new(window.State)
	}
	*scratch = append(grown(*scratch, room)[:0], state...)
	s.countApart(p, verb, *scratch, r)
	own.Store(scratch)
}

// grown is s with room for n words; what it held is lost.
func grown(s window.State, n int) window.State {
	if cap(s) >= n {
		return s
	}
	return make(window.State, 0, class(n))
}

// countApart runs verb on a copy of the state, and keeps it if it changed.
func (s *Store) countApart(p *place, verb store.Verb, state window.State, r *window.Result) {
	if next := p.apply(verb, state, r); r.Allowed {
		s.keep(p, next, r)
	}
}

// countInPlace runs verb on the state in the key's own block.
func (s *Store) countInPlace(p *place, verb store.Verb, state window.State, r *window.Result) {
	next := p.apply(verb, state, r)
	switch {
	case len(state) == 0: // a refund where there is nothing
	case len(next) > 0 && &next[0] == &state[0]:
		p.slot.resize(len(next))
	default:
		s.keep(p, next, r)
	}
}

// keep makes next the state of the key, whose memory is not the arena's.
func (s *Store) keep(p *place, next window.State, r *window.Result) {
	change := 0
	if len(next) > 0 {
		change = p.put(next, p.now.Add(r.ResetAfter), s.clock.expiry(p.read, p.table))
	} else if p.known {
		p.shard.remove(p.segment, p.key)
		change = -1
	}
	if p.reserved {
		p.reserved = false
		change--
	}
	if change != 0 {
		p.table.keys.Add(int64(change))
	}
}

// put makes s the state of the key; it does not overlap the arena. It says by
// how many the number of keys changed, which those count in that were reclaimed
// to make room.
func (p *place) put(s window.State, expires window.Instant, e expiry) (change int) {
	sh := p.shard
	before := sh.keys
	if p.segment == nil {
		sh.begin()
		p.find()
	}
	for g := p.segment; !g.put(p.slot, p.key, s); g = p.segment {
		sh.makeRoom(p.key, class(len(s)), e)
		p.find()
	}
	if !p.known {
		sh.keys++
	}
	sh.note(p.segment, expires)
	return sh.keys - before
}
