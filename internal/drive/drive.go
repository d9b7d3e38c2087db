// Package drive has a store decide the ops of requests, and applies the
// outage policies where the store cannot. It is the second of the three parts
// of the engine, between internal/plan and the verdict in package weir.
//
// # Outages
//
// A store that cannot answer names the ops concerned. They leave their call
// and follow their policies: local memory decides, or the policy alone denies
// or allows. Then the store is asked for the rest of the call, at most once
// more. Local memory is asked first because it can always give back what it
// counted, where the store may be out of reach by then. So a take stays all or
// nothing across both.
//
// What local memory counted is given to a [report.Reporter], which records it in
// the store when that answers again.
//
// Memory without room for a new key ([store.ErrFull]) has no local place to
// turn to, so the local policy denies there: a full table never hands out
// fresh quota.
package drive

import (
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// Run decides tasks, which are independent of each other: each in one atomic
// step, in order where two share a key, unless one of them meets an outage.
// What became of a task is in its fields.
func (d *Driver) Run(ctx context.Context, tasks ...*Task) {
	if len(tasks) == 1 {
		t := tasks[0]
		t.Denied = -1
		if d.Local != nil {
			d.Local.endHere(ctx, t)
		}
		if d.Timed == nil {
			d.resume(ctx, ctx, t, d.ask(ctx, t))
			return
		}
		within, cancel := d.Timed.Within(ctx)
		d.resume(ctx, within, t, d.ask(within, t))
		cancel()
		return
	}
	for _, t := range tasks {
		t.Denied = -1
		if d.Local != nil {
			d.Local.endHere(ctx, t)
		}
	}
	open := tasks
	for again := false; len(open) > 0; again = true {
		open = d.round(ctx, open, again)
	}
	for _, t := range tasks {
		d.end(ctx, t)
	}
}

// Recover decides t, for which the caller has asked the store itself: err,
// which is not nil, is the store's answer. It does what Run does after that.
func (d *Driver) Recover(ctx context.Context, t *Task, err error) {
	t.Denied = -1
	if d.Timed == nil {
		d.resume(ctx, ctx, t, err)
		return
	}
	within, cancel := d.Timed.Within(ctx)
	d.resume(ctx, within, t, err)
	cancel()
}

// resume goes on with t, to which the store has answered err: it asks the store for the rest,
// in what is left of its time. within is ctx with the end of the decision. It is for the
// store: local memory may answer later.
func (d *Driver) resume(ctx, within context.Context, t *Task, err error) {
	if err == nil {
		d.answered()
	}
	for again := false; err != nil && d.unanswered(ctx, t, err, again); again = true {
		err = d.ask(within, t)
	}
	d.end(ctx, t)
}

// ask asks the store for t alone.
func (d *Driver) ask(ctx context.Context, t *Task) error {
	call := &t.call[0]
	call.Verb, call.Ops, call.Err = t.Verb, t.Ops, nil
	if err := d.Store.Do(ctx, t.call[:]); err != nil {
		return err
	}
	return call.Err
}

// round asks the store for all tasks at once, and returns those that it has to
// be asked for again.
func (d *Driver) round(ctx context.Context, tasks []*Task, again bool) (open []*Task) {
	calls := make([]store.Call, len(tasks))
	for i, t := range tasks {
		calls[i] = store.Call{Verb: t.Verb, Ops: t.Ops}
	}
	all := d.Store.Do(ctx, calls)
	for i, t := range tasks {
		err := calls[i].Err
		if all != nil {
			err = all
		}
		switch {
		case err == nil:
			d.answered()
		case d.unanswered(ctx, t, err, again):
			open = append(open, t)
		}
	}
	return open
}

// unanswered does what follows when the store answered t with err. It reports
// whether the store has to be asked for the rest of t.
func (d *Driver) unanswered(ctx context.Context, t *Task, err error, again bool) bool {
	if err := d.drop(ctx, t, err, again); err != nil {
		if d.Local != nil {
			d.Local.giveBack(ctx, t, func(*store.Op) bool { return true })
		}
		t.Err = err
		return false
	}
	return len(t.Ops) > 0
}

// drop takes the ops that the store could not answer out of t, all of them
// when it failed again, and applies their policies. It returns err when it is
// no outage.
func (d *Driver) drop(ctx context.Context, t *Task, err error, again bool) error {
	out, ok := errors.AsType[*store.OutageError](err)
	if !ok {
		return err
	}
	if t.Outage == nil {
		if t.Reason = out.Reason; t.Reason == "" {
			t.Reason = Unknown
		}
	}
	t.Outage = out
	t.wait(out)
	d.tell(ctx, t.Verb, out)
	full := errors.Is(out, store.ErrFull)
	left, from := 0, len(t.inLocal.ops)
	for i := range t.Ops {
		dropped := out.Ops == nil || again && !full || slices.Contains(out.Ops, i)
		switch {
		case !dropped:
			t.Ops[left], t.Of[left] = t.Ops[i], t.Of[i]
			left++
		case t.Policies.OnOutage(t.Of[i]) == rule.OutageLocal && d.Local != nil && !full:
			t.inLocal.add(t.Ops[i], t.Of[i], d.Local.share(t.Ops[i].Limit))
		default:
			t.decideAlone(&t.Ops[i], t.Of[i])
		}
	}
	clear(t.Ops[left:])
	t.Ops, t.Of = t.Ops[:left], t.Of[:left]
	if err = nil; from < len(t.inLocal.ops) {
		err = d.Local.ask(ctx, t, from)
	}
	if t.deniedAlready() {
		readOnly(t.Ops)
	}
	return err
}
