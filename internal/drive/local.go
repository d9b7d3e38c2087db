package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Local is a store in this process's memory that decides in outages, for a [Driver]. Its
// fields are set once, before its first use; it is safe for concurrent use then.
type Local struct {
	Store store.Store

	// Owned reports whether the driver closes Store.
	Owned bool

	// Reporter, when not nil, is given what the store counts in an outage.
	*report.Reporter

	// End ends the use of Reporter.
	End func()

	// Nodes is how many processes share each quota in an outage. At least 1.
	Nodes int64

	// NodesNow, when not nil, returns the number that replaces Nodes.
	NodesNow func() int

	// Told, when not nil, is called with the cause of each give-back that failed.
	Told func(ctx context.Context, verb store.Verb, err error)

	shares sync.Map     // *window.Compiled → share
	kept   atomic.Int64 // in shares, or more

	outage atomic.Int64 // the instant of the last op without an answer
}

// maxShares is the maximum number of shares that are kept: quotas that come with requests can be many.
const maxShares = 1000

// share is the part of a limit that one of several nodes may admit.
type share struct {
	nodes int64
	limit *window.Compiled
}

// share returns the part of limit that one node may admit.
func (l *Local) share(limit *window.Compiled) *window.Compiled {
	nodes := l.Nodes
	if l.NodesNow != nil {
		nodes = int64(l.NodesNow())
	}
	if nodes <= 1 {
		return limit
	}
	if kept, ok := l.shares.Load(limit); ok {
		if part := kept.(share); part.nodes == nodes {
			return part.limit
		}
	}
	part := limit.Share(nodes)
	if l.kept.Add(1) > maxShares {
		l.renew()
	}
	l.shares.Store(limit, share{nodes, part})
	return part
}

func (l *Local) renew() {
	l.shares.Clear()
	l.kept.Store(0)
}

func (l *Local) close() {
	l.End()
	if l.Owned {
		_ = l.Store.Close() // memory, which has nothing to lose
	}
}

func (l *Local) tell(ctx context.Context, verb store.Verb, err error) {
	if l.Told != nil {
		l.Told(ctx, verb, err)
	}
}

// askLocal answers the local ops, from the one numbered from on, from memory.
// Ops for which memory is full are decided by their policies. Memory that is still being loaded
// decides nothing, not even by a policy: that is the error.
func (l *Local) askLocal(ctx context.Context, t *Task, from int) error {
	part := &t.inLocal
	for from < len(part.ops) {
		if t.deniedAlready() {
			readOnly(part.ops[from:])
		}
		var once *store.Op
		if t.once() != nil && from == 0 {
			own := *t.Once
			once = &own
		}
		t.call[0] = store.Call{Verb: t.Verb, Ops: part.ops[from:], Once: once}
		err := l.Store.Do(l.unsynced(ctx), t.call[:])
		if err == nil {
			err = t.call[0].Err
		}
		if err == nil {
			if once != nil {
				part.once = once
			}
			break
		}
		out, ok := errors.AsType[*store.OutageError](err)
		if !ok || !errors.Is(out, store.ErrFull) {
			part.cut(from)
			return err
		}
		t.wait(out)
		left := from
		for i := from; i < len(part.ops); i++ {
			if out.Ops == nil || slices.Contains(out.Ops, i-from) {
				t.decideByPolicy(&part.ops[i], part.of[i])
				continue
			}
			part.ops[left], part.of[left], part.limits[left] = part.ops[i], part.of[i], part.limits[i]
			left++
		}
		part.cut(left)
	}
	if part.replayed() {
		part.cut(keepAnswered(part.ops, part.of, part.limits))
	}
	if !anyDenies(part.ops[min(from, len(part.ops)):]) && !(part.replayed() && !part.once.Result.Allowed) {
		return nil
	}
	if !part.denied {
		part.denied, part.deniedFrom = true, from
	}
	return nil
}

// end ends a task after an outage: it merges the local ops into the others, after giving back what
// they counted if another op has denied the take since. What memory has denied from its first op on keeps its record.
func (l *Local) end(ctx context.Context, t *Task) {
	if t.Verb == store.Take && t.IsDenied() && !(t.inLocal.denied && t.inLocal.deniedFrom == 0) {
		l.giveBack(ctx, t, func(op *store.Op) bool { return op.Role == store.Enforce && !op.CountDenied })
	}
	l.report(t)
	if t.inLocal.replayed() {
		t.Once.Result = t.inLocal.once.Result
	}
	for n, of := range t.inLocal.of {
		t.Local = t.Local || t.inLocal.ops[n].Result.Held
		at, _ := slices.BinarySearch(t.Of, of)
		t.Of = slices.Insert(t.Of, at, of)
		t.Ops = slices.Insert(t.Ops, at, t.inLocal.ops[n])
	}
}

// giveBack gives back what the local ops that pick selects have counted, as if it had not been
// counted, and drops the record of all of them.
func (l *Local) giveBack(ctx context.Context, t *Task, pick func(*store.Op) bool) {
	if t.Verb != store.Take && t.Verb != store.Record || t.inLocal.replayed() {
		return // what an earlier call has counted is its own
	}
	ctx = l.unsynced(ctx)
	if once := t.inLocal.once; once != nil {
		if err := l.Store.Forget(context.WithoutCancel(ctx), once); err != nil {
			l.tell(ctx, t.Verb, fmt.Errorf("drop a record from local memory: %w", err))
		}
	}
	var ops []store.Op
	var of []int
	for i := range t.inLocal.ops {
		if op := &t.inLocal.ops[i]; op.N > 0 && op.Result.Allowed && !t.inLocal.refused(i) && pick(op) {
			ops, of = append(ops, *op), append(of, i)
		}
	}
	if len(ops) == 0 {
		return
	}
	if verb, err := giveBack(ctx, l.Store, t.Verb, ops); err != nil {
		l.tell(ctx, verb, fmt.Errorf("give back what local memory counted: %w", err))
		return
	}
	for n, i := range of {
		t.inLocal.ops[i].Result = givenBack(ops[n].Result)
	}
}

// unsynced returns ctx for calls of memory that do not wait for its disk, because wait does so once for them and for what they
// give the reporter.
func (l *Local) unsynced(ctx context.Context) context.Context {
	if l.Reporter.Waits() {
		return hook.Unsynced(ctx)
	}
	return ctx
}

func (l *Local) wait(ctx context.Context, tasks ...*Task) {
	if slices.ContainsFunc(tasks, func(t *Task) bool {
		return t.Err == nil && t.Verb != store.Check && (t.HeldLocally || t.waits || len(t.inLocal.ops) > 0 || t.Outage != nil && t.Verb.NeedsReceipt())
	}) {
		l.Reporter.Wait(ctx)
	}
}

// report gives the reporter the hits that memory has counted for t, which is decided and has given
// back what it had to.
func (l *Local) report(t *Task) {
	if l.Reporter == nil || t.Verb == store.Check || t.Verb.NeedsReceipt() || t.inLocal.replayed() {
		return
	}
	denied := t.Verb == store.Take && t.IsDenied()
	for i := range t.inLocal.ops {
		op := &t.inLocal.ops[i]
		if t.Verb == store.Refund {
			l.Reporter.Sub(op, given(op))
			continue
		}
		switch {
		case op.Result.Held:
			l.Reporter.Hold(op, t.inLocal.limits[i], op.N, t.inLocal.lost)
		case t.Verb == store.Record || counts(op, denied):
			l.Reporter.Add(op, t.inLocal.limits[i], op.N)
		}
	}
}

// given returns how many hits memory has given back for op, which is part of a
// refund.
func given(op *store.Op) int64 {
	if op.N > window.MaxHits || op.Limit.Measure == window.Distinct || op.Limit.After.Count > 0 {
		return op.N // all, also those that a ban has ended; one use; or hits that Used leaves out
	}
	return op.Result.Before - op.Result.Used
}

// counts reports whether memory keeps the hits of op, which is part of a take.
func counts(op *store.Op, denied bool) bool {
	switch {
	case op.Role == store.Always || op.CountDenied:
		return true
	case op.Role == store.Shadow:
		return op.Result.Allowed
	}
	return op.Role == store.Enforce && !denied && op.Result.Allowed
}

// endHolds ends or renews the holds of t in local memory, if t is about a take that was
// decided there. Local memory goes on counting a hold that was reported, for the next outage, so memory and
// the store are both asked to end it: memory first, because it cannot be unavailable. Whether the hold was
// found is for the store to say, unless the hold still waits for the report. While memory is being loaded, that is the error.
func (l *Local) endHolds(ctx context.Context, t *Task) error {
	t.onlyEnds = t.Verb == store.Settle || t.Verb == store.Cancel && !slices.ContainsFunc(t.Ops, func(op store.Op) bool { return op.Limit.HoldLength() == 0 })
	if !t.HeldLocally {
		return nil
	}
	ops := slices.Clone(t.Ops)
	for i := range ops {
		hold := *ops[i].Hold
		ops[i].Hold, ops[i].Limit = &hold, l.share(ops[i].Limit)
	}
	if err := store.Do(context.WithoutCancel(l.unsynced(ctx)), l.Store, t.Verb, ops); err != nil {
		if _, ok := errors.AsType[*store.OutageError](err); ok && !errors.Is(err, store.ErrFull) {
			return err
		}
		l.tell(ctx, t.Verb, fmt.Errorf("holds in local memory: %w", err))
		return nil
	}
	for i := range ops {
		op := &ops[i]
		if !op.Result.Held && op.Limit.HoldLength() > 0 {
			t.elsewhere = append(t.elsewhere, t.Of[i])
		}
		if t.Verb == store.Cancel && op.Limit.HoldLength() == 0 {
			t.Ops[i].N = 0 // what was reported to the store stays there
		}
		pending := false
		switch {
		case !op.Result.Held && t.Verb == store.Cancel:
			l.Reporter.Sub(op, op.Result.Before-op.Result.Used)
			continue
		case !op.Result.Held:
			continue
		case t.Verb == store.Renew:
			pending = l.Reporter.Renew(op)
		default:
			pending = l.Reporter.End(op, t.final(op))
		}
		if pending {
			t.found = append(t.found, t.Of[i])
		}
	}
	return nil
}

// endLater notes that the store has not answered about op i of t, and keeps the end of its hold. Whether there is such a hold is
// not known.
func (l *Local) endLater(t *Task, i int) {
	l.outage.Store(int64(window.At(time.Now())))
	l.keepEnd(t, i)
}

// keepEnd gives the reporter the end of the hold of op i of t, if all that t does is to end holds.
func (l *Local) keepEnd(t *Task, i int) {
	op := &t.Ops[i]
	switch {
	case !t.onlyEnds || slices.Contains(t.found, t.Of[i]):
	case t.Unproven == "":
		l.Reporter.EndLater(op, t.final(op), slices.Contains(t.elsewhere, t.Of[i]))
	default:
		l.Reporter.EndUnproven(op, t.final(op), t.Unproven)
	}
}

func (l *Local) read(ctx context.Context, op *store.Op) (window.Reading, error) {
	here := *op
	here.Limit = l.share(op.Limit)
	return l.Store.Read(ctx, &here)
}

// correct follows a correction of the store: what waits for a report and what memory has counted
// is forgotten if the count of op's key was set.
func (l *Local) correct(ctx context.Context, v store.Verb, op *store.Op) error {
	switch {
	case v == store.Unban:
		here := *op
		here.Limit = l.share(op.Limit)
		return store.Do(ctx, l.Store, v, []store.Op{here})
	case op.Result.Held || op.Result.Banned:
		return nil
	}
	return l.forget(ctx, op)
}

func (l *Local) forget(ctx context.Context, op *store.Op) error {
	l.Reporter.Forget(op)
	return l.Store.Forget(ctx, op)
}
