// Package drive makes a store decide the ops of requests, and applies the outage policies if the
// store cannot. It is the second of the three parts of the engine, between internal/plan and the
// verdict in package weir.
//
// # Calls with a record
//
// A task with Once is answered by its record if the store has one. An op of a rule that the first call did not meet
// is then dropped, because it has no result. In an outage local memory keeps a record, too, of what it has decided;
// the store has none of that. What is already denied counts nothing in the store, and has no record there: the record
// would tell the next caller of only a part of the decision.
//
// # Outages
//
// A store that cannot answer names the ops concerned. They are removed from their call and follow
// their policies: local memory decides, or the policy itself denies or allows. Then the store is
// asked for the rest of the call, at most once more. Local memory is asked first because it can
// always give back what it counted, while the store may be unavailable by then. A take is therefore
// all or nothing across both.
//
// What local memory counted is given to a [report.Reporter], which records it in
// the store when that answers again. So are ends of the store's holds, whatever the policies.
//
// A call that the store has counted and only not confirmed has its results: they hold, and the decision is degraded. A
// policy that denies makes the store give back what was counted.
//
// If memory is full ([store.ErrFull]), the local policy denies new keys instead of giving them a
// fresh quota. Memory that is still being loaded from a directory makes tasks fail that need it.
package drive

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Driver drives tasks. Its fields are set once, before its first use; it is
// safe for concurrent use then.
type Driver struct {
	Store store.Store

	// Memory is the store in memory that Store is or counts in, and nil otherwise. It needs
	// the steps around outages only after an error.
	Memory *memstore.Store

	// Timed is Store, if it bounds the time of a decision, and nil otherwise.
	Timed hook.Timed

	// Local decides in an outage for ops whose policy is local. Nil: they deny.
	Local Fallback

	// Unconfirmed is the function of this name. It is nil where all answers of Store are confirmed, so that such programs do
	// not link it.
	Unconfirmed func(ctx context.Context, d *Driver, t *Task, out *store.OutageError)

	// Told, when not nil, is called with the cause of each outage of a decision.
	Told func(ctx context.Context, verb store.Verb, err error)
}

// Fallback is a [Local]. It is an interface so that programs without a local store do
// not link what only a local store needs.
type Fallback interface {
	// share returns the part of limit that this process may admit.
	share(limit *window.Compiled) *window.Compiled
	// askLocal answers the local ops of t, from the one numbered from on.
	askLocal(ctx context.Context, t *Task, from int) error
	// end ends a task after an outage.
	end(ctx context.Context, t *Task)
	// giveBack gives back what the local ops that pick selects have counted.
	giveBack(ctx context.Context, t *Task, pick func(*store.Op) bool)
	// wait waits until what local memory has changed for tasks is on its disk, if its calls wait for that.
	wait(ctx context.Context, tasks ...*Task)
	// endHolds ends or renews the holds of t in local memory, if they may be there. Its error means
	// that they are still being loaded.
	endHolds(ctx context.Context, t *Task) error
	// endLater notes that the store has not answered about op i of t, and keeps the end of its hold if that is what t does.
	endLater(t *Task, i int)
	// follow does for tasks, which the store of d has answered, what local memory needs: see markEnds and refund.
	follow(ctx context.Context, d *Driver, tasks []*Task)

	read(ctx context.Context, op *store.Op) (window.Reading, error)
	// forget drops the state of op's key here, with what waits for a report.
	forget(ctx context.Context, op *store.Op) error
	// correct does here what Driver.Correct has done to op in the far store.
	correct(ctx context.Context, v store.Verb, op *store.Op) error

	// renew drops what was computed for limits.
	renew()
	close()

	// Answered is called when the store has answered, Ended when it has answered a call that ends a hold, which
	// waited for the report.
	Answered()
	Ended(op *store.Op, found bool)
	UseBans(namespace string, of map[string]window.Ban)
	Stats() report.Stats
}

// Run decides t in one atomic step, unless there is an outage. answer is the store's answer if the
// caller has asked it for t already: an error, or nil. The fields of t have its result.
func (d *Driver) Run(ctx context.Context, t *Task, answer error) {
	t.Denied = -1
	if d.Memory != nil && answer == nil && !t.HeldLocally && t.Once == nil {
		if answer = d.Memory.Decide(ctx, t.Verb, t.Ops); answer == nil {
			return
		}
	}
	if d.Local != nil {
		if t.Err = d.Local.endHolds(ctx, t); t.Err != nil {
			return
		}
	}
	within := ctx // with the deadline of the decision, for the store only: local memory may answer later
	if d.Timed != nil {
		var cancel context.CancelFunc
		within, cancel = d.Timed.Within(ctx)
		defer cancel()
	}
	for open, again := true, false; open; again = true {
		err := answer
		if answer = nil; err == nil {
			t.call[0] = t.next()
			if err = d.Store.Do(within, t.call[:]); err == nil {
				err = t.call[0].Err
			}
		}
		open = d.answered(ctx, t, err, again)
	}
	if d.Local != nil && (len(t.elsewhere) > 0 || t.Unproven != "" || t.Verb == store.Refund) {
		d.Local.follow(within, d, []*Task{t})
	}
	d.end(ctx, t)
	if d.Local != nil && (t.Outage != nil || t.HeldLocally || t.waits) {
		d.Local.wait(ctx, t)
	}
}

// RunAll decides tasks, which are independent of each other: each as Run does, in order if two share
// a key, but all in one call of the store. Those with an outage are asked again in one call.
func (d *Driver) RunAll(ctx context.Context, tasks []*Task) {
	if len(tasks) == 1 {
		d.Run(ctx, tasks[0], nil)
		return
	}
	open := make([]*Task, 0, len(tasks))
	for _, t := range tasks {
		t.Denied = -1
		if d.Local != nil {
			t.Err = d.Local.endHolds(ctx, t)
		}
		if t.Err == nil {
			open = append(open, t)
		}
	}
	for again := false; len(open) > 0; again = true {
		calls := make([]store.Call, len(open))
		for i, t := range open {
			calls[i] = t.next()
		}
		all := d.Store.Do(ctx, calls)
		var left []*Task
		for i, t := range open {
			if d.answered(ctx, t, cmp.Or(all, calls[i].Err), again) {
				left = append(left, t)
			}
		}
		open = left
	}
	if d.Local != nil {
		d.Local.follow(ctx, d, tasks)
	}
	for _, t := range tasks {
		d.end(ctx, t)
	}
	if d.Local != nil {
		d.Local.wait(ctx, tasks...)
	}
}

// Look looks for the record of a call that has no ops, once, whose N is 0.
func (d *Driver) Look(ctx context.Context, verb store.Verb, once *store.Op) error {
	if d.Timed != nil {
		var cancel context.CancelFunc
		ctx, cancel = d.Timed.Within(ctx)
		defer cancel()
	}
	none := *once // an op that is not counted, as the store decides no call without ops
	none.Key = append(slices.Clone(once.Key), "\x04none"...)
	calls := []store.Call{{Verb: verb, Ops: []store.Op{none}, Once: once}}
	if err := d.Store.Do(ctx, calls); err != nil {
		return err
	}
	if hook.HasResults(calls[0].Err) {
		return nil
	}
	return calls[0].Err
}

// answered handles the answer of the store to t, an error or nil. It reports whether the store has to be asked for
// the rest of t.
func (d *Driver) answered(ctx context.Context, t *Task, err error, again bool) bool {
	if err == nil {
		if d.Local != nil {
			d.Local.Answered()
		}
		return false
	}
	open := false
	if out, ok := errors.AsType[*store.OutageError](err); ok {
		d.meet(ctx, t, out)
		if hook.HasResults(out) && d.Unconfirmed != nil {
			d.Unconfirmed(ctx, d, t, out)
			return false
		}
		open, err = d.drop(ctx, t, out, again)
	}
	if err != nil {
		if d.Local != nil {
			d.Local.giveBack(ctx, t, func(*store.Op) bool { return true })
		}
		t.Err = err
		return false
	}
	return open
}

// meet records that t has met an outage.
func (d *Driver) meet(ctx context.Context, t *Task, out *store.OutageError) {
	if t.Outage == nil {
		if t.Reason = out.Reason; t.Reason == "" {
			t.Reason = Unknown
		}
	}
	t.Outage = out
	t.wait(out)
	d.reportOutage(ctx, t.Verb, out)
}

// isLocal reports whether local memory decides in an outage for what belongs to of.
func (d *Driver) isLocal(t *Task, of int) bool {
	return t.Policies.OnOutage(of) == rule.OutageLocal && d.Local != nil
}

// drop removes the ops that the store could not answer from t, or all that have no result if it failed again, and applies
// their policies. It reports whether the store has to be asked for the others.
func (d *Driver) drop(ctx context.Context, t *Task, out *store.OutageError, again bool) (open bool, err error) {
	full, answered := errors.Is(out, store.ErrFull), t.Verb.NeedsReceipt() && !out.Uncounted // see store.OutageError
	left, from := 0, len(t.inLocal.ops)
	for i := range t.Ops {
		dropped := out.Ops == nil || again && !full && !answered || slices.Contains(out.Ops, i)
		if dropped && d.Local != nil {
			d.Local.endLater(t, i)
		}
		switch {
		case !dropped:
			t.Ops[left], t.Of[left] = t.Ops[i], t.Of[i]
			left++
		case d.isLocal(t, t.Of[i]) && !full:
			t.inLocal.add(t.Ops[i], t.Of[i], d.Local.share(t.Ops[i].Limit), out)
		default:
			t.decideByPolicy(&t.Ops[i], t.Of[i])
		}
	}
	clear(t.Ops[left:])
	t.Ops, t.Of = t.Ops[:left], t.Of[:left]
	if from < len(t.inLocal.ops) {
		err = d.Local.askLocal(ctx, t, from)
		t.takeAsLocal(from)
	}
	if t.deniedAlready() {
		readOnly(t.Ops)
	}
	return len(t.Ops) > 0 && !answered, err
}

// end ends t, which is decided or has an error.
func (d *Driver) end(ctx context.Context, t *Task) {
	if t.Replayed() && t.Err == nil { // the record has no results for some ops
		left := keepAnswered(t.Ops, t.Of, nil)
		clear(t.Ops[left:])
		t.Ops, t.Of = t.Ops[:left], t.Of[:left]
	}
	for i, of := range t.Of {
		if t.Err == nil && t.Verb != store.Renew && slices.Contains(t.found, of) {
			d.Local.Ended(&t.Ops[i], t.Ops[i].Result.Held)
		}
	}
	if t.Outage != nil && t.Err == nil && d.Local != nil {
		d.Local.end(ctx, t)
	}
	for i, of := range t.Of {
		if slices.Contains(t.found, of) {
			t.Ops[i].Result.Held = true
		}
	}
}

func (d *Driver) reportOutage(ctx context.Context, verb store.Verb, err error) {
	if d.Told != nil {
		d.Told(ctx, verb, err)
	}
}

// Read returns the numbers of op's key. When the store cannot answer and there
// is a local store, it returns those of local memory for an op whose policy is
// local, and degraded is true.
func (d *Driver) Read(ctx context.Context, op *store.Op, policy rule.Outage) (r window.Reading, degraded bool, err error) {
	r, err = d.Store.Read(ctx, op)
	if err == nil || d.Local == nil || policy != rule.OutageLocal {
		return r, false, err
	}
	if _, ok := errors.AsType[*store.OutageError](err); !ok {
		return r, false, err
	}
	r, err = d.Local.read(ctx, op)
	return r, true, err
}

// Forget drops the state of op's key, in the store and in local memory. While that is being loaded it does neither.
func (d *Driver) Forget(ctx context.Context, op *store.Op) error {
	if d.Local != nil {
		if _, err := d.Local.read(ctx, op); err != nil {
			return err
		}
	}
	if err := d.Store.Forget(ctx, op); err != nil || d.Local == nil {
		return err
	}
	return d.Local.forget(ctx, op)
}

// Correct sets the count of op's key, or lifts its ban, in the store and in local memory. While that is being loaded it
// does neither.
func (d *Driver) Correct(ctx context.Context, v store.Verb, op *store.Op) error {
	if d.Local != nil {
		if _, err := d.Local.read(ctx, op); err != nil {
			return err
		}
	}
	ops := []store.Op{*op}
	if err := store.Do(ctx, d.Store, v, ops); err != nil {
		return err
	}
	op.Result = ops[0].Result
	if d.Local == nil {
		return nil
	}
	return d.Local.correct(ctx, v, op)
}

// UseBans gives reports the bans of the rules that are in force in namespace, by the identity of their
// spaces.
func (d *Driver) UseBans(namespace string, of map[string]window.Ban) {
	if d.Local != nil {
		d.Local.UseBans(namespace, of)
	}
}

// Renew drops what d has computed for limits. The caller calls it when it
// replaces them.
func (d *Driver) Renew() {
	if d.Local != nil {
		d.Local.renew()
	}
}

// Reports returns the numbers of what local memory counted and reports.
func (d *Driver) Reports() (s report.Stats) {
	if d.Local != nil {
		s = d.Local.Stats()
	}
	return s
}

// Close ends the use of the Reporter, and closes the local store if it is Owned.
func (d *Driver) Close() {
	if d.Local != nil {
		d.Local.close()
	}
}
