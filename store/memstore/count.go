package memstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// count runs v on the key of op: in its own memory when what it becomes fits
// there, and else on a scratch state, which is copied to new memory. It follows
// find.
func (s *Store) count(p *place, op *store.Op, v store.Verb) {
	r, l := &op.Result, op.Limit
	if p.hits.N == 0 && (v <= store.Refund || v >= always) {
		if p.look(op, r); v != store.Take && r.Banned { // a ban denies takes and checks alone
			r.Allowed, r.RetryAfter = true, 0
		}
		return
	}
	if l.Ban.For > 0 || l.HoldLength() > 0 {
		p.keyspace.follow(l)
	}
	s.countHits(p, op, v)
	if v != store.Take || r.Allowed || r.Banned {
		p.shard.mark(p.key)
	}
}

// countHits does so where the state may change.
func (s *Store) countHits(p *place, op *store.Op, v store.Verb) {
	r, state := &op.Result, window.State(p.at.State())
	room, st := p.room(v, op, state), p.shard.stripe
	switch {
	case room <= cap(state):
		if next := p.apply(v, op, state); len(state) > 0 { // else a refund of an unknown key
			s.replace(p, v, state, next, r)
		}
		return
	case room <= len(st.scratch):
		state = append(st.scratch[:0], state...)
	default:
		if cap(st.large) < room {
			st.large = make(window.State, 0, room+room/4)
		}
		st.large = append(st.large[:0], state...)
		state = st.large
	}
	if next := p.apply(v, op, state); r.Allowed || r.Banned {
		s.keep(p, next, r)
	}
}

// replace makes next the state of the key, whose state is state. Most often next is
// in the memory of state.
func (s *Store) replace(p *place, v store.Verb, state, next window.State, r *window.Result) {
	switch {
	case len(next) == 0 || &next[0] != &state[0]:
		s.keep(p, next, r)
	default:
		p.at.Resize(len(next))
		if v >= store.Refund || r.Banned { // otherwise no key expires earlier
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
