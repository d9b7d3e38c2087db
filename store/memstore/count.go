package memstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// count runs verb on the key: in its own memory when what it becomes fits
// there, and else on a scratch state, which is copied to new memory. It follows
// find.
func (s *Store) count(p *place, verb store.Verb, r *window.Result) {
	if p.hits.N == 0 && (verb <= store.Refund || verb >= always) {
		if p.look(r); verb != store.Take && r.Banned { // a ban denies takes and checks alone
			r.Allowed, r.RetryAfter = true, 0
		}
		return
	}
	if p.limit.Bans() || p.limit.Holds() {
		p.keyspace.follow(p.limit)
	}
	s.countHits(p, verb, r)
	if verb != store.Take || r.Allowed || r.Banned {
		p.shard.changes(p.key)
		p.shard.mark(p.key)
	}
}

// countHits does so where the state may change.
func (s *Store) countHits(p *place, verb store.Verb, r *window.Result) {
	state := window.State(p.at.State())
	if verb == store.Take && p.hold == nil && len(state) > 0 {
		*r = window.Result{}
		if next, ok := p.limit.TakeInPlace(r, state, p.now, p.hits); ok {
			s.replace(p, verb, state, next, r)
			return
		}
	}
	room := p.room(verb, state)
	switch {
	case room <= cap(state):
		s.countInPlace(p, verb, state, r)
		return
	case room <= len(p.shard.stripe.scratch):
		s.countApart(p, verb, append(p.shard.stripe.scratch[:0], state...), r)
		return
	}
	st := p.shard.stripe
	if cap(st.large) < room {
		st.large = make(window.State, 0, room+room/4)
	}
	st.large = append(st.large[:0], state...)
	s.countApart(p, verb, st.large, r)
}

// countApart runs verb on a copy of the state, and keeps it if it changed.
func (s *Store) countApart(p *place, verb store.Verb, state window.State, r *window.Result) {
	if next := p.apply(verb, state, r); r.Allowed || r.Banned {
		s.keep(p, next, r)
	}
}

// countInPlace runs verb on the state in the key's own memory.
func (s *Store) countInPlace(p *place, verb store.Verb, state window.State, r *window.Result) {
	if next := p.apply(verb, state, r); len(state) > 0 { // else a refund of an unknown key
		s.replace(p, verb, state, next, r)
	}
}

// replace makes next the state of the key, whose state is state. Most often next is
// in the memory of state.
func (s *Store) replace(p *place, verb store.Verb, state, next window.State, r *window.Result) {
	switch {
	case len(next) == 0 || &next[0] != &state[0]:
		s.keep(p, next, r)
	default:
		p.at.Resize(len(next))
		if verb >= store.Refund || r.Banned { // otherwise no key expires earlier
			p.shard.table.Note(p.at, p.expires(r))
		}
	}
}

// keep makes next the state of the key. The memory of next is not the table's.
func (s *Store) keep(p *place, next window.State, r *window.Result) {
	t := &p.shard.table
	change := -t.Keys()
	if len(next) > 0 {
		e := s.clock.expiry(p.read, p.keyspace)
		if t.Put(p.at, p.key, next, p.expires(r), e.Expiry) > 0 {
			e.raise()
		}
	} else if p.at.Known() {
		t.Remove(p.at, p.key)
	}
	p.shard.account(&s.memory)
	change += t.Keys()
	if p.reserved {
		p.reserved = false
		change--
	}
	if change != 0 {
		p.keyspace.keys.Add(int64(change))
	}
}

// expires returns when the key of p, which r was answered for, expires, or an
// earlier instant.
func (p *place) expires(r *window.Result) int64 {
	if r.ResetAfter == window.Never {
		return 1<<63 - 1
	}
	return int64(p.now.Add(r.ResetAfter))
}
