package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// follow does in local memory what follows from the answers of the store to tasks: it marks the ends of holds for the reports of
// other instances, keeps those whose receipts cannot be judged soon after an outage, and gives back what a refund has.
func (l *Local) follow(ctx context.Context, d *Driver, tasks []*Task) {
	l.markEnds(ctx, d, tasks)
	l.keepUnproven(ctx, d, tasks)
	if !l.Reporter.Restored() {
		return // memory is being loaded, and the store's answer to a refund does not wait for that
	}
	for _, t := range tasks {
		if t.Verb == store.Refund && t.Err == nil && !t.Replayed() {
			l.refund(ctx, d, t)
		}
	}
}

// markEnds marks the ends of the holds of tasks that local memory did not have: the process whose memory has made them may
// still have to report them, whether the store had them or not. An end that could not be marked is kept: a store that refuses
// what it would have to write can still answer that it has no such hold.
func (l *Local) markEnds(ctx context.Context, d *Driver, tasks []*Task) {
	var calls []store.Call
	var of []*Task
	for _, t := range tasks {
		for i, n := range t.Of {
			if t.Err == nil && t.Verb != store.Renew && slices.Contains(t.elsewhere, n) {
				calls, of = append(calls, report.MarkEnd(&t.Ops[i], t.final(&t.Ops[i]))), append(of, t)
			}
		}
	}
	if len(calls) == 0 {
		return
	}
	all := d.Store.Do(ctx, calls)
	for i := range calls {
		err := cmp.Or(all, calls[i].Err)
		if err == nil || hook.HasResults(err) {
			continue
		}
		end := &calls[i].Ops[0]
		l.Reporter.EndLater(end, end.N, true)
		if out, ok := errors.AsType[*store.OutageError](err); ok {
			d.meet(ctx, of[i], out)
		}
	}
}

// keepUnproven keeps the ends of tasks that have found no hold because of their receipts, as long as other instances may not have
// made their secrets known since an outage. What the store answers about them says nothing.
func (l *Local) keepUnproven(ctx context.Context, d *Driver, tasks []*Task) {
	for _, t := range tasks {
		if t.Err != nil || t.Unproven == "" || window.At(time.Now()) >= window.Instant(l.outage.Load()).Add(report.ProofTime) {
			continue
		}
		for i := range t.Ops {
			l.keepEnd(t, i)
		}
		if t.Outage == nil {
			d.meet(ctx, t, &store.OutageError{Reason: Unknown, Err: errors.New("the receipt may be of another instance, which was in an outage")})
		}
	}
}

// refund gives back in memory what a refund of the store concerns there: hits that wait for a report, as far as the store has not
// given back so many, because a full one refuses to count and answers that it has none; and those that were reported, which the
// next outage would count again.
func (l *Local) refund(ctx context.Context, d *Driver, t *Task) {
	call := []store.Call{{Verb: t.Verb}}
	if t.Once != nil {
		own := *t.Once
		call[0].Once = &own
	}
	var left []int64 // of the ops of the call, what the store has not given back
	for i, op := range t.Ops {
		if !d.isLocal(t, t.Of[i]) {
			continue
		}
		n := notGiven(&op)
		pending := l.Reporter.Waiting(&op)
		op.Limit, op.Result = l.share(op.Limit), window.Result{}
		if op.N = l.concerned(ctx, &op, n, pending); op.N > 0 {
			call[0].Ops, left = append(call[0].Ops, op), append(left, n)
			t.waits = t.waits || n > 0 && pending > 0
		}
	}
	if len(left) == 0 {
		return
	}
	err := l.Store.Do(context.WithoutCancel(l.unsynced(ctx)), call)
	switch err = cmp.Or(err, call[0].Err); {
	case err != nil:
		l.tell(ctx, t.Verb, fmt.Errorf("refund in local memory: %w", err))
		return
	case call[0].Once != nil && call[0].Once.Result.Before > 0: // memory has the record of an earlier call
		return
	}
	for i := range left {
		l.Reporter.Sub(&call[0].Ops[i], left[i])
	}
}

// concerned returns how many hits memory gives back for op, part of a refund of which the store has not given back left hits: all of
// them but for those that go on waiting for a report.
func (l *Local) concerned(ctx context.Context, op *store.Op, left, pending int64) int64 {
	stays := max(0, pending-left)
	switch {
	case op.N > window.MaxHits || stays == 0:
		return op.N
	case op.Limit.Measure == window.Distinct:
		return 0
	}
	r, err := l.Store.Read(ctx, op)
	if err != nil {
		return 0
	}
	return min(op.N, r.Used-stays)
}

// notGiven returns how many hits the store has not given back for op, which is part of a refund, or 0 if it does not say.
func notGiven(op *store.Op) int64 {
	switch {
	case op.N > window.MaxHits: // all
		return op.N
	case op.Limit.Measure == window.Distinct && op.Result.Before == op.Result.Used:
		return op.N
	}
	return op.N - given(op)
}
