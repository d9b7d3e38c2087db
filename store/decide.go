package store

import (
	"github.com/weirhq/weir/internal/transition"
	"github.com/weirhq/weir/window"
)

// Decide decides a call in Go. It is for stores that lock the states of a call's keys, and
// write back what it leaves in them: states[i] is the state of the key of c.Ops[i], and the one after them, if
// the call has c.Once, that of its key. now returns the instant of an op, and member
// the hash of a member, which must be the same in all processes that share the states.
// The states may be changed where they are, as by [window.Compiled]. Decide sets the results of
// the ops, and the instant of their holds. If c.Once has found a record of another request, it sets c.Err
// to [ErrConflict]. No two ops may have the same key.
func Decide(c *Call, states []window.State, now func(*Op) window.Instant, member func([]byte) uint64) {
	if c.Once != nil {
		record := &states[len(c.Ops)]
		if c.replay(*record, now(c.Once)) {
			return
		}
		defer func() {
			if !c.deniedOnly() {
				*record = c.record(*record, now)
			}
		}()
	}
	for i := range c.Ops {
		if h := c.Ops[i].Hold; h != nil {
			h.Decided = now(&c.Ops[i])
		}
	}
	d := decision{c.Ops, states, now, member}
	switch c.Verb {
	case Take:
		d.take()
	case Cancel:
		d.cancel()
	case Reserve:
		d.reserve()
	default:
		for i := range c.Ops {
			c.Ops[i].Result = d.apply(i, d.transition(c.Verb, i))
		}
	}
}

// decision is what Decide works on.
type decision struct {
	ops    []Op
	states []window.State
	now    func(*Op) window.Instant
	member func([]byte) uint64
}

// transition returns what v, which is no take or cancel, does to the state of op i.
func (d *decision) transition(v Verb, i int) transition.Transition {
	switch v {
	case Record:
		if h := d.ops[i].Hold; h != nil && h.NoStrike {
			return transition.RecordNoStrike
		}
		return transition.Record
	case Refund:
		return transition.Refund
	case Settle:
		return transition.Settle
	case Renew:
		return transition.Renew
	case Set:
		return transition.Set
	case Unban:
		return transition.Unban
	}
	return transition.Look
}

// take evaluates all ops before it counts any: the enforcing ones decide together.
func (d *decision) take() {
	upTo, admitted := false, true
	for i := range d.ops {
		d.ops[i].Result = d.apply(i, transition.Look)
		upTo = upTo || d.ops[i].UpTo
	}
	if upTo {
		LowerUpTo(Take, d.ops)
		for i := range d.ops {
			d.ops[i].Result = d.apply(i, transition.Look)
		}
	}
	for i := range d.ops {
		if op := &d.ops[i]; op.Role == Enforce {
			admitted = admitted && op.Result.Allowed
		}
	}
	for i := range d.ops {
		d.takeOp(i, admitted)
	}
}

// takeOp counts op i, whose result is that of a look, if it fits and, unless it is a shadow op,
// all enforcing ops were admitted.
func (d *decision) takeOp(i int, admitted bool) {
	op := &d.ops[i]
	own := op.Result
	switch {
	case op.Role == Always:
		op.Result = d.apply(i, transition.RecordNow)
		return
	case own.Allowed && op.Role != Look && (admitted || op.Role == Shadow):
		op.Result = d.apply(i, transition.Take)
		return
	case !own.Allowed && op.Limit.Ban.For > 0:
		own = d.apply(i, transition.Take) // a strike
		op.Result = own
	}
	if op.CountDenied {
		r := d.apply(i, transition.RecordDenied)
		r.Allowed, r.RetryAfter, r.Struck = own.Allowed, own.RetryAfter, own.Struck
		if !own.Allowed {
			if later := d.apply(i, transition.Look); !later.Allowed {
				r.RetryAfter = later.RetryAfter
			}
		}
		op.Result = r
	}
}

// cancel ends the holds of the ops. If it finds one, it gives back what the same take counted
// without holds.
func (d *decision) cancel() {
	found := false
	for i := range d.ops {
		d.ops[i].Result = d.run(i, transition.Settle, 0)
		found = found || d.ops[i].Result.Held
	}
	for i := range d.ops {
		if op := &d.ops[i]; op.Hold != nil && (found || op.Hold.Sure) && !op.Result.Held && op.Limit.HoldLength() == 0 && op.N > 0 {
			op.Result = d.apply(i, transition.GiveBack)
		}
	}
}

// reserve holds the hits of all ops, or of none.
func (d *decision) reserve() {
	for _, t := range [...]transition.Transition{transition.Look, transition.CanReserve, transition.Reserve} {
		admitted := true
		for i := range d.ops {
			d.ops[i].Result = d.apply(i, t)
			admitted = admitted && d.ops[i].Result.Allowed
		}
		switch {
		case t == transition.Look:
			LowerUpTo(Reserve, d.ops)
		case !admitted:
			return
		}
	}
}

// apply makes the transition t with the hits of op i on its state.
func (d *decision) apply(i int, t transition.Transition) window.Result {
	return d.run(i, t, d.ops[i].N)
}

func (d *decision) run(i int, t transition.Transition, n int64) (r window.Result) {
	op := &d.ops[i]
	hits := window.Hits{N: n}
	if op.Limit.Measure == window.Distinct {
		hits.Member = d.member(op.Member)
	}
	var hold *window.Hold
	if op.Hold != nil {
		hold = &op.Hold.Hold
	}
	next := op.Limit.Do(t, &r, d.states[i], d.now(op), hits, hold)
	if t != transition.Look && t != transition.CanReserve {
		d.states[i] = next
	}
	return r
}
