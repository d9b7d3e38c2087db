package memstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// evaluate writes the results of all ops. Their shards are locked, and reserve
// has found them.
func (s *Store) evaluate(verb store.Verb, places []place) {
	if verb == store.Take {
		s.take(places)
		return
	}
	if verb == store.Cancel {
		s.cancel(places)
		return
	}
	for i := range places {
		p := &places[i]
		if p.findAgain(); verb == store.Check {
			p.look(&p.op.Result)
		} else {
			s.count(p, verb, &p.op.Result)
		}
	}
}

// take counts all enforcing ops or none, and each of the others on its own.
func (s *Store) take(places []place) {
	admitted, counted := s.admit(places)
	for i := range places {
		p := &places[i]
		if p == counted {
			if !admitted && p.op.CountDenied {
				p.find()
				s.recordDenied(p, &p.op.Result)
			}
			continue
		}
		p.findAgain()
		switch p.op.Role {
		case store.Always:
			s.count(p, always, &p.op.Result)
			continue
		case store.Look:
			s.lookOnly(p, p.op)
			continue
		}
		denied := p.op.Role == store.Enforce && !admitted
		if !denied || p.op.Role == store.Enforce && !p.op.Result.Allowed && p.limit.Bans() { // a strike
			s.count(p, store.Take, &p.op.Result)
			denied = denied || !p.op.Result.Allowed
		}
		if denied && p.op.CountDenied {
			s.recordDenied(p, &p.op.Result)
		}
	}
}

// lookOnly evaluates op as if it were denied: it is counted with CountDenied only.
func (s *Store) lookOnly(p *place, op *store.Op) {
	if p.look(&op.Result); !op.Result.Allowed && p.limit.Bans() {
		s.count(p, store.Take, &op.Result) // a strike
		p.find()
	}
	if op.CountDenied {
		s.recordDenied(p, &op.Result)
	}
}

// admit reports whether all enforcing ops fit. If all before the last one do, it
// counts the last one, which looks itself, and returns it.
func (s *Store) admit(places []place) (admitted bool, counted *place) {
	last := -1
	for i := range places {
		if places[i].op.Role == store.Enforce {
			last = i
		}
	}
	admitted = true
	for i := range places[:last+1] {
		p := &places[i]
		if p.op.Role != store.Enforce {
			continue
		}
		p.findAgain()
		if i == last && admitted {
			s.count(p, store.Take, &p.op.Result)
			return p.op.Result.Allowed, p
		}
		p.look(&p.op.Result)
		admitted = admitted && p.op.Result.Allowed
	}
	return admitted, nil
}

// recordDenied counts an op of a take that was denied. The op's own answer, which
// is in r, stays; its wait becomes the one after what was counted now.
func (s *Store) recordDenied(p *place, r *window.Result) {
	own := *r
	p.find() // a strike may have moved it
	s.count(p, denied, r)
	r.Allowed, r.RetryAfter, r.Struck = own.Allowed, own.RetryAfter, own.Struck
	if own.Allowed {
		return
	}
	var again window.Result
	p.find()
	if p.look(&again); !again.Allowed {
		r.RetryAfter = again.RetryAfter
	}
}
