package leasestore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/lease"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

var errNoReserve = errors.New("the store does not reserve")

// reply is the answer of the store to a request for a lease.
type reply struct {
	n      int64      // granted; 0: refused
	spent  int64      // of credit, counted now; if it is less than was reported, nothing may be spent of n
	length lease.Time // of the lease
	retry  lease.Time // until the store can grant, if it has refused
	used   int64      // before
	left   int64      // afterwards
	reset  lease.Time // until all is left again

	err         error
	uncounted   bool // the store has certainly granted nothing
	unconfirmed bool // what it has counted may be lost: nothing may be spent of n
}

// reserve has the store settle leases that are closed, count what was spent on credit, as far as it fits, and then grant a lease. A
// record would make the store forget older hits where others still count under a larger quota.
func (s *leases) reserve(op *store.Op, a *lease.Ask, settles []lease.Settle) (r reply) {
	hold := store.Hold{Hold: window.Hold{ID: a.ID, End: window.Instant(a.Length / lease.Time(time.Microsecond))}, Least: a.Min, Part: a.Div}
	ask := *op
	ask.N, ask.Hold = a.Want, &hold
	s.close(settles)
	calls := settling(*op, settles)
	if a.Report > 0 {
		spent := *op
		spent.N, spent.UpTo = a.Report, true
		calls = append(calls, store.Call{Verb: store.Take, Ops: []store.Op{spent}})
	}
	calls = append(calls, store.Call{Verb: store.Reserve, Ops: []store.Op{ask}})
	if r.err = s.shared.Do(context.Background(), calls); r.err != nil {
		r.uncounted = true
		return r
	}
	for i := len(settles); i < len(calls); i++ {
		err := calls[i].Err
		if r.unconfirmed = r.unconfirmed || err != nil; !hook.HasResults(err) {
			out, ok := errors.AsType[*store.OutageError](err)
			r.err, r.uncounted = err, !ok || out.Uncounted
		}
	}
	if r.err != nil {
		return r
	}
	if a.Report > 0 {
		if spent := &calls[len(settles)].Ops[0]; spent.Result.Allowed {
			r.spent = spent.N
		}
	}
	done := &calls[len(calls)-1].Ops[0]
	result := &done.Result
	r.used, r.left, r.reset = result.Before, result.Remaining, lease.Time(result.ResetAfter)
	if result.Held {
		r.n, r.length = done.N, lease.Time(hold.End.Sub(hold.Decided))
		return r
	}
	if result.Allowed {
		r.err, r.uncounted = errNoReserve, true
		return r
	}
	if r.retry = max(lease.Time(result.RetryAfter), 1); result.RetryAfter == window.Never {
		r.retry = a.Length
	}
	return r
}

// settle gives back what is left of leases of the key of op, which are closed. It does so even if ctx is cancelled, but within its
// deadline: that of a decision is its time-out, which the store does not set again.
func (s *leases) settle(ctx context.Context, op store.Op, settles []lease.Settle) {
	s.close(settles)
	lasting := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		lasting, cancel = context.WithDeadline(lasting, end)
		defer cancel()
	}
	s.send(lasting, settling(op, settles))
}

// close counts leases that are closed.
func (s *leases) close(settles []lease.Settle) {
	s.settled.Add(int64(len(settles)))
	for _, l := range settles {
		s.spent.Add(l.Spent)
		s.returned.Add(l.Granted - l.Spent)
	}
}

// send sends calls, and settles without an answer again: a second one changes nothing. What is not given back stays unused until it
// leaves the window.
func (s *leases) send(ctx context.Context, calls []store.Call) {
	for range 2 {
		if len(calls) == 0 || s.shared.Do(ctx, calls) != nil {
			return
		}
		calls = slices.DeleteFunc(calls, func(c store.Call) bool { return hook.HasResults(c.Err) || c.Verb != store.Settle })
	}
}

// settling returns the calls that settle leases.
func settling(op store.Op, settles []lease.Settle) []store.Call {
	calls := make([]store.Call, len(settles), len(settles)+2)
	for i, l := range settles {
		op.N, op.Hold = l.Spent, &store.Hold{Hold: window.Hold{ID: l.ID}, Sure: true}
		calls[i] = store.Call{Verb: store.Settle, Ops: []store.Op{op}}
	}
	return calls
}
