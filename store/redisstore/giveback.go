package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// giveBackTime is how long giving back may take. Whoever asked does not wait
// that long; what is not given back by then ages like any other hit.
const giveBackTime = time.Second

// enforced picks what a take that was denied has counted in the groups that
// admitted it, and must not have.
func enforced(g *group, verb store.Verb, op *store.Op) bool {
	return op.Role == store.Enforce && !op.CountDenied && everything(g, verb, op)
}

// everything picks all that a group has counted.
func everything(g *group, verb store.Verb, op *store.Op) bool {
	switch {
	case op.N <= 0 || g.err != nil:
		return false
	case verb == store.Take && op.Role == store.Enforce:
		return g.admitted || op.CountDenied
	case verb == store.Take && op.Role == store.Shadow:
		return op.Result.Allowed || op.CountDenied
	case verb == store.Refund && !op.Limit.Distinct():
		return op.Result.Used < op.Result.Before
	case verb == store.Refund:
		return op.Result.Before > 0
	}
	return verb != store.Check
}

// giveBack undoes what the groups have counted of the ops that pick picks, and
// has the results say so. It waits for that until ctx is done.
func (s *Store) giveBack(ctx context.Context, r request, groups []group, pick func(*group, store.Verb, *store.Op) bool) {
	var undos []*undo
	for i := range groups {
		g := &groups[i]
		g.admitted = g.err == nil && !slices.ContainsFunc(g.which, func(i int) bool { return denies(&r.ops[i]) })
		// What is soon over is given back apart: where it is too late for
		// that, it need not be too late for the rest.
		var soon, later []int
		for _, i := range g.which {
			switch op := &r.ops[i]; {
			case !pick(g, r.verb, op):
			case inside(op, g.at) < giveBackTime:
				soon = append(soon, i)
			default:
				later = append(later, i)
			}
		}
		for _, which := range [][]int{soon, later} {
			if len(which) > 0 {
				undos = append(undos, newUndo(r, g, which))
			}
		}
	}
	for _, u := range undos {
		if !s.background(func() { u.run(s.servers) }) {
			u.err = store.ErrClosed
			close(u.done)
		}
	}
	for _, u := range undos {
		select {
		case <-u.done:
			u.report(r.ops)
		case <-ctx.Done():
		}
	}
}

// undo is what one group gives back.
type undo struct {
	slot  int
	which []int // of the call's ops
	call  request
	err   error         // when it is done
	done  chan struct{} // closed then
}

func newUndo(r request, g *group, which []int) *undo {
	u := &undo{slot: g.slot, which: which, done: make(chan struct{})}
	u.call = request{program: r.program, verb: store.Refund, which: upTo(len(which)), options: r.options}
	for _, i := range which {
		op := r.ops[i]
		// The caller may use its slices again before this is over.
		op.Key, op.Member, op.Together = slices.Clone(op.Key), slices.Clone(op.Member), slices.Clone(op.Together)
		if r.verb == store.Refund {
			u.call.verb = store.Record
			if !op.Limit.Distinct() {
				op.N = op.Result.Before - op.Result.Used
			}
		}
		u.call.ops = append(u.call.ops, op)
		// Once the hits are out of their window, taking some away would take
		// away somebody else's. Until the key is unused they are in it: they
		// were its newest hits.
		if r.verb != store.Refund && r.options.now == 0 {
			until := g.at.Add(inside(&op, g.at)) - 1
			if u.call.options.deadline == 0 || until < u.call.options.deadline {
				u.call.options.deadline = until
			}
		}
	}
	return u
}

// inside is how long what op has counted at an instant stays in its window, or
// less. With a condition there are two windows, and the key is in use until it
// is out of both.
func inside(op *store.Op, at window.Instant) time.Duration {
	if op.Limit.Base() == nil {
		return op.Result.ResetAfter
	}
	return min(op.Result.ResetAfter, newestStays(op.Limit.Base(), at), newestStays(op.Limit.Inner(), at))
}

// newestStays is how long a hit at an instant is in l's window. A fixed window
// that has begun before is not known here, and taken for one that begins.
func newestStays(c *window.Compiled, at window.Instant) time.Duration {
	l := c.Limit()
	switch w := &l.Window; w.Kind {
	case window.KindCalendar:
		return w.PeriodEnd(at).Sub(at)
	case window.KindBucket:
		return w.Length / time.Duration(max(l.Quota, 1))
	default:
		return w.Length
	}
}

func (u *undo) run(on servers) {
	defer close(u.done)
	ctx, cancel := context.WithTimeoutCause(context.Background(), giveBackTime, errTimeout)
	defer cancel()
	_, u.err = on.run(ctx, u.slot, u.call)
}

// report has the results of a denied take say what a check says: this op fits,
// and was not counted.
func (u *undo) report(ops []store.Op) {
	for n, i := range u.which {
		r, now := &ops[i].Result, u.call.ops[n].Result
		r.Used = r.Before
		if u.err == nil {
			r.Used, r.Before, r.ResetAfter = now.Used, now.Used, now.ResetAfter
		}
		if r.Quota != window.Unlimited {
			r.Remaining = max(0, r.Quota-r.Used)
		}
	}
}
