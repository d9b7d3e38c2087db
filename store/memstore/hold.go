package memstore

import (
	"github.com/weirhq/weir/internal/step"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// cancel ends the holds of ops. If it finds one, it gives back what the same
// take counted under limits whose takes do not hold.
func (s *Store) cancel(ops []store.Op, slots []opSlot) {
	found := false
	for i := range slots {
		p := &slots[i]
		op := &ops[p.index]
		p.findAgain()
		s.apply(p, op, step.Settle, window.Hits{})
		found = found || op.Result.Held
	}
	for i := range slots {
		p := &slots[i]
		op := &ops[p.index]
		if op.Hold != nil && (found || op.Hold.Sure) && !op.Result.Held && op.Limit.HoldLength() == 0 && p.hits.N > 0 {
			p.find()
			s.apply(p, op, step.GiveBack, p.hits)
		}
	}
}

// reserve holds the hits of all ops, or of none.
func (s *Store) reserve(ops []store.Op, slots []opSlot) {
	lower(store.Reserve, ops, slots)
	admitted := true
	for i := range slots {
		p := &slots[i]
		op := &ops[p.index]
		var hold *window.Hold
		if op.Hold != nil {
			hold = &op.Hold.Hold
		}
		op.Limit.Do(step.CanReserve, &op.Result, p.at.State(), p.now, p.hits, hold)
		admitted = admitted && op.Result.Allowed
	}
	for i := range slots {
		if p := &slots[i]; admitted {
			p.findAgain()
			s.apply(p, &ops[p.index], step.Reserve, p.hits)
		}
	}
}
