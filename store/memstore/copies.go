package memstore

import (
	"context"
	"slices"

	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// decideCopies decides a rare call on copies of its states, by [store.Decide]: a reserve, or a call that has a
// record, which is one more key of its step. A record that is there is found in a full store, too.
func (s *Store) decideCopies(ctx context.Context, c *store.Call) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ops := slices.Clone(c.Ops)
	if c.Once != nil {
		ops = append(ops, *c.Once)
	}
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
		call := *c
		decides := true
		if c.Once != nil {
			found := *c.Once
			found.N, call.Once = 0, &found
			store.Decide(&call, states, now, s.member)
			decides = call.Err == nil && found.Result.Before == 0 && c.Once.N > 0
		}
		var full []int
		if decides {
			if full = s.reserveCopies(c, ops, slots); dead(slots) {
				release(slots)
				unlockAll(slots)
				continue
			}
			if full == nil {
				call.Once = c.Once
				store.Decide(&call, states, now, s.member)
				s.putStates(ops, slots, states)
			}
		}
		if s.sweepAndUnlock(slots) {
			s.sweepNext()
		}
		if full != nil {
			return s.fullCopies(slots, full, len(c.Ops))
		}
		if c.Once != nil {
			c.Once.Result = call.Once.Result
		}
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

// reserveCopies is reserveKeys for the ops of c and, if it has a record, that.
func (s *Store) reserveCopies(c *store.Call, ops []store.Op, slots []opSlot) (full []int) {
	if !adds(c.Verb) { // but the record
		for i := range slots {
			if p := &slots[i]; p.index < len(c.Ops) {
				p.hits.N = 0
			}
		}
	}
	return s.reserveKeys(c.Verb, ops, slots)
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

// fullCopies returns the error of a call for some of whose keys there is no room: ops of its own and, after them, its
// record.
func (s *Store) fullCopies(slots []opSlot, full []int, ops int) error {
	out := s.outage(slots, full) // which sorts full
	if n := len(full) - 1; full[n] == ops {
		if full = full[:n]; n == 0 {
			return once.ErrFull
		}
	}
	out.Ops = full
	return out
}
