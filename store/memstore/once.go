package memstore

import (
	"context"
	"slices"

	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// decideOnce decides a call that has a record, which is one more key of its step. It works on copies of the
// states, by [store.Decide]. A record that is there is found in a full store, too.
func (s *Store) decideOnce(ctx context.Context, c *store.Call) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	record := *c.Once
	ops := append(slices.Clip(c.Ops), record)
	for i := range ops {
		ops[i].Hold = nil // which is set only if the call is decided
	}
	slots := make([]opSlot, len(ops))
	for {
		clear(slots)
		if _, err := s.lockAndFind(c.Verb, ops, slots); err != nil {
			return err
		}
		states, now := copies(slots)
		found := record
		found.N = 0
		call := store.Call{Verb: c.Verb, Ops: c.Ops, Once: &found}
		store.Decide(&call, states, now, s.member)
		decides := call.Err == nil && found.Result.Before == 0 && record.N > 0
		var full []int
		if decides {
			if full = s.reserveOnce(c.Verb, ops, slots); dead(slots) {
				release(slots)
				unlockAll(slots)
				continue
			}
			if full == nil {
				call.Once = &record
				store.Decide(&call, states, now, s.member)
				s.putStates(ops, slots, states)
			}
		}
		if s.sweepAndUnlock(slots) {
			s.sweepNext()
		}
		if full != nil {
			return s.fullOnce(slots, full, len(c.Ops))
		}
		c.Once.Result = call.Once.Result
		return call.Err
	}
}

// copies returns copies of the states of slots, in the order of their ops, and the call's instant for an op.
func copies(slots []opSlot) (states []window.State, now func(*store.Op) window.Instant) {
	states = make([]window.State, len(slots))
	for i := range slots {
		states[slots[i].index] = slices.Clone(window.State(slots[i].at.State()))
	}
	read := slots[0].read
	return states, func(op *store.Op) window.Instant { return read.of(op.Limit.OnCalendar()) }
}

// reserveOnce is reserveKeys for a call that has a record, the last of ops.
func (s *Store) reserveOnce(v store.Verb, ops []store.Op, slots []opSlot) (full []int) {
	if !adds(v) { // but the record
		for i := range slots {
			if p := &slots[i]; p.index < len(ops)-1 {
				p.hits.N = 0
			}
		}
	}
	return s.reserveKeys(v, ops, slots)
}

// putStates writes the states that a call has changed.
func (s *Store) putStates(ops []store.Op, slots []opSlot, states []window.State) {
	for i := range slots {
		p := &slots[i]
		op, next := &ops[p.index], states[p.index]
		if p.find(); slices.Equal(p.at.State(), next) {
			continue
		}
		p.keyspace.follow(op.Limit)
		isNew, expires := !p.at.Known(), int64(op.Limit.Expires(next))
		s.putState(p, next, expires)
		if op.Limit.Export && len(next) > 0 {
			p.name(s, op, isNew, expires)
		}
		p.shard.mark(p.key)
	}
}

// fullOnce returns the error of a call that has a record and ops, for some of which there is no room.
func (s *Store) fullOnce(slots []opSlot, full []int, ops int) error {
	out := s.outage(slots, full) // which sorts full
	if n := len(full) - 1; full[n] == ops {
		if full = full[:n]; n == 0 {
			return once.ErrFull
		}
	}
	out.Ops = full
	return out
}
