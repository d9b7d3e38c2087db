package memstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// evaluate writes the results of all ops. Their shards are locked.
func (s *Store) evaluate(verb store.Verb, places []place) {
	if verb == store.Take {
		s.take(places)
		return
	}
	for i := range places {
		p := &places[i]
		if verb == store.Check {
			p.op.Result = p.look()
		} else {
			p.op.Result = s.count(p, verb)
		}
	}
}

// take counts all enforcing ops or none, and each of the others by itself.
func (s *Store) take(places []place) {
	enforcing, admitted := 0, true
	for i := range places {
		if places[i].op.Role == store.Enforce {
			enforcing++
		}
	}
	// One that decides alone looks and counts in one go.
	if enforcing > 1 {
		for i := range places {
			if p := &places[i]; p.op.Role == store.Enforce {
				p.op.Result = p.look()
				admitted = admitted && p.op.Result.Allowed
			}
		}
	}
	for i := range places {
		p := &places[i]
		op := p.op
		if op.Role == store.Always {
			op.Result = s.count(p, store.Record)
			continue
		}
		denied := op.Role == store.Enforce && !admitted
		if !denied {
			op.Result = s.count(p, store.Take)
			denied = !op.Result.Allowed
		}
		if denied && op.CountDenied {
			s.recordDenied(p)
		}
	}
}

// recordDenied counts an op of a take that was denied. It keeps the op's own
// answer; the wait is the one after what is now counted.
func (s *Store) recordDenied(p *place) {
	own := p.op.Result
	r := s.count(p, store.Record)
	r.Allowed, r.RetryAfter = own.Allowed, own.RetryAfter
	if !own.Allowed {
		if again := p.look(); !again.Allowed {
			r.RetryAfter = again.RetryAfter
		}
	}
	p.op.Result = r
}

// look asks without counting.
func (p *place) look() window.Result {
	var state window.State
	if g, i, ok := p.shard.find(p.key); ok {
		state = g.state(i)
	}
	return p.op.Limit.Check(state, p.now, p.hits)
}

// apply runs verb on a state.
func (p *place) apply(verb store.Verb, state window.State) (window.State, window.Result) {
	switch verb {
	case store.Take:
		return p.op.Limit.Take(state, p.now, p.hits)
	case store.Record:
		return p.op.Limit.Record(state, p.now, p.hits)
	default:
		return p.op.Limit.Refund(state, p.now, p.hits)
	}
}

// count runs verb on the key: in its block when what it becomes fits there,
// and else on a scratch state, from which it gets a new block.
func (s *Store) count(p *place, verb store.Verb) window.Result {
	if p.hits.N == 0 {
		return p.look()
	}
	var state window.State
	g, i, ok := p.shard.find(p.key)
	if ok {
		state = g.state(i)
	}
	room := p.op.Limit.Room(state, p.hits)
	switch {
	case verb == store.Refund || room <= cap(state):
		return s.countInPlace(p, verb, g, i, state)
	case room <= len(p.shard.scratch):
		return s.countApart(p, verb, append(p.shard.scratch[:0], state...))
	}
	scratch := s.scratch[p.number].Swap(nil)
	if scratch == nil {
		scratch = new(window.State)
	}
	*scratch = append(grown(*scratch, room)[:0], state...)
	r := s.countApart(p, verb, *scratch)
	s.scratch[p.number].Store(scratch)
	return r
}

// grown is s with room for n words; what it held is lost.
func grown(s window.State, n int) window.State {
	if cap(s) >= n {
		return s
	}
	return make(window.State, 0, class(n))
}

// countApart runs verb on a copy of the state, and keeps it if it changed.
func (s *Store) countApart(p *place, verb store.Verb, state window.State) window.Result {
	next, r := p.apply(verb, state)
	if r.Allowed {
		s.keep(p, next, r)
	}
	return r
}

// countInPlace runs verb on the state in slot i of g.
func (s *Store) countInPlace(p *place, verb store.Verb, g *segment, i int, state window.State) window.Result {
	next, r := p.apply(verb, state)
	switch {
	case len(state) == 0: // a refund where there is nothing
	case len(next) > 0 && &next[0] == &state[0]:
		g.slots[i].len = uint16(len(next))
	default:
		s.keep(p, next, r)
	}
	return r
}

// keep makes next the state of the key, whose memory is not the arena's.
func (s *Store) keep(p *place, next window.State, r window.Result) {
	change := 0
	if len(next) > 0 {
		change = p.shard.put(p.key, next, p.now.Add(r.ResetAfter), p.expiry)
	} else if g, i, ok := p.shard.find(p.key); ok {
		p.shard.remove(g, i)
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
