package memstore

import "github.com/weirhq/weir/store"

// evaluate writes the results of all ops. Their shards are locked.
func (s *Store) evaluate(verb store.Verb, places []place) {
	switch verb {
	case store.Take:
		s.take(places)
	case store.Check:
		for i := range places {
			places[i].find()
			places[i].look()
		}
	default:
		for i := range places {
			places[i].find()
			s.count(&places[i], verb)
		}
	}
	for i := range places {
		places[i].op.Result = places[i].result
	}
}

// take counts all enforcing ops or none, and each of the others by itself.
func (s *Store) take(places []place) {
	admitted := s.admit(places)
	for i := range places {
		p := &places[i]
		if p.find(); p.op.Role == store.Always {
			s.count(p, store.Record)
			continue
		}
		denied := p.op.Role == store.Enforce && !admitted
		if !denied {
			s.count(p, store.Take)
			denied = !p.result.Allowed
		}
		if denied && p.op.CountDenied {
			s.recordDenied(p)
		}
	}
}

// admit says whether all enforcing ops fit. One that decides alone looks and
// counts in one go.
func (s *Store) admit(places []place) bool {
	enforcing := 0
	for i := range places {
		if places[i].op.Role == store.Enforce {
			enforcing++
		}
	}
	if enforcing == 1 {
		return true
	}
	admitted := true
	for i := range places {
		if p := &places[i]; p.op.Role == store.Enforce {
			p.find()
			p.look()
			admitted = admitted && p.result.Allowed
		}
	}
	return admitted
}

// recordDenied counts an op of a take that was denied. It keeps the op's own
// answer; the wait is the one after what is now counted.
func (s *Store) recordDenied(p *place) {
	own := p.result
	s.count(p, store.Record)
	counted := p.result
	counted.Allowed, counted.RetryAfter = own.Allowed, own.RetryAfter
	if !own.Allowed {
		p.find()
		if p.look(); !p.result.Allowed {
			counted.RetryAfter = p.result.RetryAfter
		}
	}
	p.result = counted
}
