package memstore

import (
	"github.com/weirhq/weir/internal/transition"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// applyEach writes the results of all ops of a verb other than take. Their shards are locked, and their keys were
// found and reserved.
func (s *Store) applyEach(v store.Verb, ops []store.Op, slots []opSlot) {
	if v == store.Cancel {
		s.cancel(ops, slots)
		return
	}
	for i := range slots {
		p := &slots[i]
		op := &ops[p.index]
		p.findAgain()
		switch v {
		case store.Check:
			p.look(op, &op.Result)
		case store.Record:
			if op.Hold != nil && op.Hold.NoStrike {
				s.apply(p, op, transition.RecordNoStrike)
			} else {
				s.apply(p, op, transition.Record)
			}
		case store.Refund:
			s.apply(p, op, transition.Refund)
		case store.Settle:
			p.hits = window.Hits{N: op.N} // negative: what was held
			s.apply(p, op, transition.Settle)
		case store.Renew:
			s.apply(p, op, transition.Renew)
		case store.Set:
			s.apply(p, op, transition.Set)
		case store.Unban:
			s.apply(p, op, transition.Unban)
		}
	}
}

// cancel ends the holds of ops. If it finds one, it gives back what the same
// take counted under limits whose takes do not hold.
func (s *Store) cancel(ops []store.Op, slots []opSlot) {
	found := false
	for i := range slots {
		p := &slots[i]
		op := &ops[p.index]
		p.findAgain()
		p.hits = window.Hits{}
		s.apply(p, op, transition.Settle)
		found = found || op.Result.Held
	}
	for i := range slots {
		p := &slots[i]
		op := &ops[p.index]
		if op.Hold != nil && (found || op.Hold.Sure) && !op.Result.Held && op.Limit.HoldLength() == 0 && op.N > 0 {
			p.find()
			p.hits = s.hitsOf(op)
			s.apply(p, op, transition.GiveBack)
		}
	}
}

// look evaluates op without counting. p.find has been called.
func (p *opSlot) look(op *store.Op, r *window.Result) {
	op.Limit.Do(transition.Look, r, p.at.State(), p.now, p.hits, nil)
}

// take counts all enforcing ops or none, and each of the others on its own. It looks at
// the enforcing ops first.
func (s *Store) take(ops []store.Op, slots []opSlot) {
	for i := range ops {
		if ops[i].UpTo {
			lower(ops, slots)
			break
		}
	}
	admitted := true
	for i := range slots {
		p := &slots[i]
		if op := &ops[p.index]; op.Role == store.Enforce {
			p.findAgain()
			p.look(op, &op.Result)
			admitted = admitted && op.Result.Allowed
		}
	}
	for i := range slots {
		p := &slots[i]
		op := &ops[p.index]
		p.findAgain()
		switch {
		case op.Role != store.Enforce:
			s.takeAlone(p, op)
		case admitted:
			s.apply(p, op, transition.Count)
		default:
			s.takeDenied(p, op, true)
		}
	}
}

// lower lowers the hits of ops that take up to what fits.
func lower(ops []store.Op, slots []opSlot) {
	for i := range slots {
		p := &slots[i]
		if op := &ops[p.index]; op.UpTo {
			p.findAgain()
			p.look(op, &op.Result)
		}
	}
	store.LowerUpTo(store.Take, ops)
	for i := range slots {
		p := &slots[i]
		p.hits.N = max(ops[p.index].N, 0)
	}
}

// takeAlone takes an op that no other one can deny: the only op of a call, or one that does not enforce.
func (s *Store) takeAlone(p *opSlot, op *store.Op) {
	do := transition.Take
	switch op.Role {
	case store.Always:
		do = transition.RecordNow
	case store.Look: // evaluated as if it were denied
		do = transition.Look
	}
	if s.apply(p, op, do); !op.Result.Allowed || op.Role == store.Look {
		s.takeDenied(p, op, op.Role == store.Look)
	}
}

// takeDenied ends a take of an op that was denied. looked reports whether the op was only
// looked at: then a denial of its own under a limit that bans is a strike.
func (s *Store) takeDenied(p *opSlot, op *store.Op, looked bool) {
	if looked && !op.Result.Allowed && op.Limit.Ban.For > 0 {
		s.apply(p, op, transition.Take)
	}
	if op.CountDenied {
		s.recordDenied(p, op)
	}
}

// recordDenied counts an op of a take that was denied. The op's own answer stays; its
// wait becomes the one after what was counted now.
func (s *Store) recordDenied(p *opSlot, op *store.Op) {
	r := &op.Result
	own := *r
	p.find() // a strike may have moved it
	s.apply(p, op, transition.RecordDenied)
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
