package memstore

import (
	"github.com/weirhq/weir/internal/transition"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// apply runs do on the key of op with p.hits, and writes the answer into the op's result:
// in the key's own memory where what it becomes fits there, and else on a scratch
// state, which is copied to new memory. p.find has been called.
func (s *Store) apply(p *opSlot, op *store.Op, do transition.Transition) {
	r, l, state := &op.Result, op.Limit, window.State(p.at.State())
	if p.hits.N == 0 && do <= transition.Refund { // changes nothing, and has no key reserved
		if l.Do(transition.Look, r, state, p.now, p.hits, nil); do > transition.Take && r.Banned { // a ban denies takes and checks alone
			r.Allowed, r.RetryAfter = true, 0
		}
		return
	}
	if l.Ban.For > 0 || l.Hold > 0 || l.Export {
		p.keyspace.follow(l)
	}
	var hold *window.Hold
	if op.Hold != nil {
		hold = &op.Hold.Hold
	}
	work := state
	if cap(state) < l.MaxWords() {
		if room := l.WordsAfter(do, state, p.hits); room > cap(state) {
			work = p.shard.stripe.copyOf(state, room)
		}
	}
	isNew := !p.at.Known()
	next := l.Do(do, r, work, p.now, p.hits, hold)
	switch {
	case do == transition.Look, do <= transition.Take && !r.Allowed && !r.Banned, len(state)+len(next) == 0:
		return // nothing has changed
	case len(state) > 0 && len(next) > 0 && &next[0] == &state[0]:
		p.at.Resize(len(next))
		if do >= transition.Refund || r.Banned { // otherwise no key expires earlier
			p.shard.table.Touch(p.at, p.expires(r))
		}
	default:
		s.putState(p, next, p.expires(r))
	}
	if l.Export && len(next) > 0 {
		p.name(s, op, isNew, p.expires(r))
	}
	p.shard.mark(p.key)
}

// putState makes next the state of the key, which expires at some instant. The memory of next is not the table's.
func (s *Store) putState(p *opSlot, next window.State, expires int64) {
	t := &p.shard.table
	change := -t.Keys()
	if len(next) > 0 {
		e := s.clock.expiry(p.read, p.keyspace)
		if t.Put(p.at, p.key, next, expires, e.Expiry) > 0 {
			e.raise()
		}
	} else if p.at.Known() {
		t.Remove(p.at, p.key)
		p.shard.names.forget(p.key)
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
func (p *opSlot) expires(r *window.Result) int64 {
	if r.ResetAfter == window.Never {
		return 1<<63 - 1
	}
	return int64(p.now.Add(r.ResetAfter))
}
