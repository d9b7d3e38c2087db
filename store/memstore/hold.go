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

// isPlain reports whether verb, for p, is about neither holds nor bans.
func (p *place) isPlain(verb store.Verb) bool { return verb <= store.Refund && p.hold == nil }

// stamp notes the instant of the decision in the op.
func (p *place) stamp() {
	if p.hold != nil {
		p.hold.Decided = p.now
	}
}

// applyHold applies a verb, as apply does, where isPlain is false.
func (p *place) applyHold(verb store.Verb, state window.State, r *window.Result) window.State {
	var hold store.Hold
	if p.hold != nil {
		hold = *p.hold
	}
	switch verb {
	case store.Take:
		state, *r = p.limit.TakeHold(state, p.now, p.hits, hold.ID)
	case always:
		hold.At, hold.End = p.now, p.now.Add(p.limit.HoldLength())
		state, *r = p.limit.RecordHold(state, p.now, p.hits, hold.Hold)
	case denied:
		state, *r = p.limit.RecordDenied(state, p.now, p.hits)
	case store.Record:
		if hold.Quiet {
			state, *r = p.limit.RecordQuietly(state, p.now, p.hits, hold.Hold)
		} else {
			state, *r = p.limit.RecordHold(state, p.now, p.hits, hold.Hold)
		}
	case store.Refund:
		state, *r = p.limit.Refund(state, p.now, p.hits)
	case store.Settle:
		state, *r = p.limit.Settle(state, p.now, hold.ID, p.op.N)
	case store.Cancel:
		state, *r = p.limit.Cancel(state, p.now, hold.ID)
	case store.Renew:
		state, *r = p.limit.Renew(state, p.now, hold.ID)
	case giveBack:
		state, *r = p.limit.GiveBack(state, p.now, hold.At, p.hits)
	}
	return state
}

// cancel ends the holds of places. If it finds one, it gives back what the same
// take counted under limits whose takes do not hold.
func (s *Store) cancel(places []place) {
	found := false
	for i := range places {
		p := &places[i]
		p.findAgain()
		s.count(p, store.Cancel, &p.op.Result)
		found = found || p.op.Result.Held
	}
	for i := range places {
		if p := &places[i]; p.givesBack(found) {
			p.findAgain()
			s.count(p, giveBack, &p.op.Result)
		}
	}
}

// givesBack reports whether p, whose hold was cancelled, gives back hits without
// a hold. found reports whether a hold of the call was found.
func (p *place) givesBack(found bool) bool {
	return p.hold != nil && (found || p.hold.Sure) && !p.op.Result.Held && !p.limit.Holds() && p.hits.N > 0
}
