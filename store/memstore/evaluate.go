package memstore

import (
	"github.com/weirhq/weir/internal/verb"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// evaluate writes the results of all ops. Their shards are locked, and their keys were
// found and reserved.
func (s *Store) evaluate(v store.Verb, ops []store.Op, places []place) {
	switch v {
	case store.Take:
		s.take(ops, places)
		return
	case store.Cancel:
		s.cancel(ops, places)
		return
	}
	for i := range places {
		p := &places[i]
		op := &ops[p.index]
		if p.findAgain(); v == store.Check {
			p.look(op, &op.Result)
		} else {
			s.count(p, op, v)
		}
	}
}

// take counts all enforcing ops or none, and each of the others on its own. It looks at
// the enforcing ops of several first.
func (s *Store) take(ops []store.Op, places []place) {
	several, admitted := len(places) > 1, true
	if several {
		for i := range places {
			p := &places[i]
			if op := &ops[p.index]; op.Role == store.Enforce {
				p.findAgain()
				p.look(op, &op.Result)
				admitted = admitted && op.Result.Allowed
			}
		}
	}
	for i := range places {
		p := &places[i]
		op := &ops[p.index]
		p.findAgain()
		switch op.Role {
		case store.Always:
			s.count(p, op, always)
			continue
		case store.Look:
			s.lookOnly(p, op)
			continue
		}
		denied := op.Role == store.Enforce && !admitted
		if !denied || !op.Result.Allowed && op.Limit.Ban.For > 0 { // a strike
			if op.Role != store.Enforce || !several || !s.takeLooked(p, op) {
				s.count(p, op, store.Take)
			}
			denied = denied || !op.Result.Allowed
		}
		if denied && op.CountDenied {
			s.recordDenied(p, op)
		}
	}
	if !several {
		places[0].promote(&ops[0])
	}
}

// takeLooked counts an op that look has admitted in the key's own memory. It reports
// false, and has changed nothing, where count has to.
func (s *Store) takeLooked(p *place, op *store.Op) bool {
	next, ok := op.Limit.Do(verb.TakeLooked, &op.Result, p.at.State(), p.now, p.hits, nil)
	if ok {
		p.at.Resize(len(next))
		p.shard.mark(p.key)
	}
	return ok
}

// lookOnly evaluates op as if it were denied: it is counted with CountDenied only.
func (s *Store) lookOnly(p *place, op *store.Op) {
	if p.look(op, &op.Result); !op.Result.Allowed && op.Limit.Ban.For > 0 {
		s.count(p, op, store.Take) // a strike
	}
	if op.CountDenied {
		s.recordDenied(p, op)
	}
}

// recordDenied counts an op of a take that was denied. The op's own answer stays; its
// wait becomes the one after what was counted now.
func (s *Store) recordDenied(p *place, op *store.Op) {
	r := &op.Result
	own := *r
	p.find() // a strike may have moved it
	s.count(p, op, denied)
	r.Allowed, r.RetryAfter, r.Struck = own.Allowed, own.RetryAfter, own.Struck
	if own.Allowed {
		return
	}
	var again window.Result
	p.find()
	if p.look(op, &again); !again.Allowed {
		r.RetryAfter = again.RetryAfter
	}
}
