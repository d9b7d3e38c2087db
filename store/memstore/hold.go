package memstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// What count runs besides the verbs of [store.Verb].
const (
	always   store.Verb = 64 + iota // a take of an always op: record, with a hold if the op has one
	denied                          // a take that was denied and counts: see [window.Compiled.RecordDenied]
	giveBack                        // a cancel under a limit whose takes do not hold
)

// apply runs verb on a state, and writes the answer into the op's result.
func (p *place) apply(verb store.Verb, op *store.Op, state window.State) window.State {
	r, l := &op.Result, op.Limit
	var hold store.Hold
	if op.Hold != nil {
		hold = *op.Hold
	}
	switch verb {
	case store.Take:
		if hold.ID.IsZero() {
			*r = window.Result{}
			return l.TakeInto(r, state, p.now, p.hits)
		}
		state, *r = l.TakeHold(state, p.now, p.hits, hold.ID)
	case always:
		hold.At, hold.End = p.now, p.now.Add(l.HoldLength())
		state, *r = l.RecordHold(state, p.now, p.hits, hold.Hold)
	case denied:
		state, *r = l.RecordDenied(state, p.now, p.hits)
	case store.Record:
		if hold.Quiet {
			state, *r = l.RecordQuietly(state, p.now, p.hits, hold.Hold)
		} else {
			state, *r = l.RecordHold(state, p.now, p.hits, hold.Hold)
		}
	case store.Refund:
		state, *r = l.Refund(state, p.now, p.hits)
	case store.Settle:
		state, *r = l.Settle(state, p.now, hold.ID, op.N)
	case store.Cancel:
		state, *r = l.Cancel(state, p.now, hold.ID)
	case store.Renew:
		state, *r = l.Renew(state, p.now, hold.ID)
	case giveBack:
		state, *r = l.GiveBack(state, p.now, hold.At, p.hits)
	}
	return state
}

// cancel ends the holds of ops. If it finds one, it gives back what the same
// take counted under limits whose takes do not hold.
func (s *Store) cancel(ops []store.Op, places []place) {
	found := false
	for i := range places {
		p := &places[i]
		op := &ops[p.index]
		p.findAgain()
		s.count(p, op, store.Cancel)
		found = found || op.Result.Held
	}
	for i := range places {
		p := &places[i]
		op := &ops[p.index]
		if op.Hold != nil && (found || op.Hold.Sure) && !op.Result.Held && !op.Limit.Holds() && p.hits.N > 0 {
			p.find()
			s.count(p, op, giveBack)
		}
	}
}
