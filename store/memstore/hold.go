package memstore

import (
	"github.com/weirhq/weir/internal/verb"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// What count runs besides the verbs of [store.Verb].
const (
	always   store.Verb = 64 + iota // a take of an always op: record, with a hold if the op has one
	denied                          // a take that was denied and counts: see [verb.RecordDenied]
	giveBack                        // a cancel under a limit whose takes do not hold
)

// apply runs v on a state, and writes the answer into the op's result.
func (p *place) apply(v store.Verb, op *store.Op, state window.State) window.State {
	var hold store.Hold
	if op.Hold != nil {
		hold = *op.Hold
	}
	do, hits := verb.Take, p.hits
	switch v {
	case always:
		do = verb.RecordNow
	case denied:
		do = verb.RecordDenied
	case store.Record:
		if do = verb.Record; hold.Quiet {
			do = verb.RecordQuietly
		}
	case store.Refund:
		do = verb.Refund
	case store.Settle:
		do, hits.N = verb.Settle, op.N
	case store.Cancel:
		do, hits.N = verb.Settle, 0
	case store.Renew:
		do = verb.Renew
	case giveBack:
		do = verb.GiveBack
	}
	state, _ = op.Limit.Do(do, &op.Result, state, p.now, hits, &hold.Hold)
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
		if op.Hold != nil && (found || op.Hold.Sure) && !op.Result.Held && op.Limit.HoldLength() == 0 && p.hits.N > 0 {
			p.find()
			s.count(p, op, giveBack)
		}
	}
}
