package memstore

import (
	"context"

	"github.com/weirhq/weir/internal/transition"
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

// decideReserve decides a reserve. It is rare, and works on copies of the states, by [store.Decide].
func (s *Store) decideReserve(ctx context.Context, c *store.Call) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	slots := make([]opSlot, len(c.Ops))
	for {
		clear(slots)
		if _, err := s.lockAndFind(c.Verb, c.Ops, slots); err != nil {
			return err
		}
		full := s.reserveKeys(c.Verb, c.Ops, slots)
		if dead(slots) {
			release(slots)
			unlockAll(slots)
			continue
		}
		if full == nil {
			states, now := copies(slots)
			store.Decide(c, states, now, s.member)
			s.putStates(c.Ops, slots, states)
		}
		if s.sweepAndUnlock(slots) {
			s.sweepNext()
		}
		if full != nil {
			return s.outage(slots, full)
		}
		return nil
	}
}
