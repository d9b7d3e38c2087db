// Package drive has a store decide the ops of requests, and applies the
// outage policies where the store cannot. It is the second of the three rooms
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
// Memory without room for a new key ([store.ErrFull]) has no local place to
// turn to, so the local policy denies there: a full table never hands out
// fresh quota.
package drive

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Driver drives tasks. Its fields are set once, before its first use; it is
// safe for concurrent use then.
type Driver struct {
	Store store.Store

	// Local decides in an outage for ops whose policy is local. Nil: they deny.
	Local store.Store

	// Nodes is how many processes share each quota in an outage. At least 1.
	Nodes int64

	// Told, when not nil, is called with the cause of each outage that a
	// decision met, and of each give-back that failed.
	Told func(verb store.Verb, err error)

	shares sync.Map // *window.Compiled → the part of it that one node may admit
}

// Policies are outage policies by number.
type Policies interface {
	OnOutage(of int) rule.Outage
}

// Task is the ops of one request on their way through the store. Its zero
// value is ready for use. A Task can be used again after Reset; it then reuses
// its memory.
type Task struct {
	Verb store.Verb

	// Ops are the ops to decide, and Of what each of them belongs to: the
	// caller's numbers, ascending. After Run they are the ops that were
	// answered, with their results.
	Ops []store.Op
	Of  []int

	// Policies are the outage policies of what the ops belong to.
	Policies Policies

	// Refused is set by the caller for a request that is denied whatever the
	// ops answer.
	Refused bool

	// Denied is set by Run to what the first op belongs to whose policy denied
	// the request, or to -1.
	Denied int

	// Outage is set by Run to the cause, when the store could not answer some
	// op. The decision is degraded then.
	Outage error

	// Err is set by Run when the task was not decided. Nothing was counted.
	Err error

	call  [1]store.Call
	local local
}

// Reset drops what t refers to. The ops and Of stay the caller's.
func (t *Task) Reset() {
	t.Ops, t.Of, t.Policies, t.call[0] = nil, nil, nil, store.Call{}
	if t.Outage != nil {
		t.local.reset()
	}
	t.Refused, t.Outage, t.Err = false, nil, nil
}

// Run decides tasks, which are independent of each other: each in one atomic
// step, in order where two share a key, unless one of them meets an outage.
// What became of a task is in its fields.
func (d *Driver) Run(ctx context.Context, tasks ...*Task) {
	for _, t := range tasks {
		t.Denied = -1
	}
	open := tasks
	for again := false; len(open) > 0; again = true {
		open = d.round(ctx, open, again)
	}
	for _, t := range tasks {
		if t.Outage != nil && t.Err == nil {
			d.settle(ctx, t)
		}
	}
}

// Recover decides t, whose only op the store answered with err, as Run does
// after its first round. The caller has asked the store itself.
func (d *Driver) Recover(ctx context.Context, t *Task, err error) {
	t.Denied = -1
	if t.Err = d.drop(ctx, t, err, false); t.Err == nil {
		d.settle(ctx, t)
	}
}

// round asks the store for all tasks at once, and returns those that it has to
// be asked for again.
func (d *Driver) round(ctx context.Context, tasks []*Task, again bool) (open []*Task) {
	if len(tasks) == 1 { // most often; without a list of calls
		t := tasks[0]
		call := &t.call[0]
		call.Verb, call.Ops, call.Err = t.Verb, t.Ops, nil
		err := d.Store.Do(ctx, t.call[:])
		if err == nil {
			err = call.Err
		}
		if err == nil || !d.unanswered(ctx, t, err, again) {
			return nil
		}
		return tasks
	}
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
		if err != nil && d.unanswered(ctx, t, err, again) {
			open = append(open, t)
		}
	}
	return open
}

// unanswered does what follows when the store answered t with err. It reports
// whether the store has to be asked for the rest of t.
func (d *Driver) unanswered(ctx context.Context, t *Task, err error, again bool) bool {
	if err := d.drop(ctx, t, err, again); err != nil {
		d.giveBack(ctx, t, func(*store.Op) bool { return true })
		t.Err = err
		return false
	}
	return len(t.Ops) > 0
}

// drop takes the ops that the store could not answer out of t, all of them
// when it failed again, and applies their policies. It returns err when it is
// no outage.
func (d *Driver) drop(ctx context.Context, t *Task, err error, again bool) error {
	var out *store.OutageError
	if !errors.As(err, &out) {
		return err
	}
	t.Outage = out
	d.tell(t.Verb, out)
	full := errors.Is(out, store.ErrFull)
	left, from := 0, len(t.local.ops)
	for i := range t.Ops {
		dropped := out.Ops == nil || again && !full || slices.Contains(out.Ops, i)
		switch {
		case !dropped:
			t.Ops[left], t.Of[left] = t.Ops[i], t.Of[i]
			left++
		case t.Policies.OnOutage(t.Of[i]) == rule.OutageLocal && d.Local != nil && !full:
			op := t.Ops[i]
			op.Limit = d.share(op.Limit)
			t.local.add(op, t.Of[i])
		default:
			t.decideAlone(&t.Ops[i], t.Of[i])
		}
	}
	t.Ops, t.Of = t.Ops[:left], t.Of[:left]
	err = d.askLocal(ctx, t, from)
	if t.refused() {
		readOnly(t.Ops)
	}
	return err
}

// decideAlone answers op by its policy and nothing else.
func (t *Task) decideAlone(op *store.Op, of int) {
	if op.Role == store.Enforce && t.Policies.OnOutage(of) != rule.OutageAllow && t.Denied < 0 {
		t.Denied = of
	}
}

// refused reports whether the request is denied already, whatever the store
// answers.
func (t *Task) refused() bool {
	decides := t.Verb == store.Take || t.Verb == store.Check
	return t.Refused || decides && (t.Denied >= 0 || t.local.denied)
}

// readOnly turns the enforcing ops of a denied request into reads. Those that
// count what is denied become records.
func readOnly(ops []store.Op) {
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Role != store.Enforce:
		case op.CountDenied:
			op.Role, op.CountDenied = store.Always, false
		default:
			op.N = 0
		}
	}
}

// share returns the part of limit that one of d.Nodes may admit.
func (d *Driver) share(limit *window.Compiled) *window.Compiled {
	if d.Nodes <= 1 {
		return limit
	}
	if part, ok := d.shares.Load(limit); ok {
		return part.(*window.Compiled)
	}
	part := limit.Share(d.Nodes)
	d.shares.Store(limit, part)
	return part
}

// Renew drops what d has computed for limits. The caller calls it when it
// replaces them.
func (d *Driver) Renew() { d.shares.Clear() }

func (d *Driver) tell(verb store.Verb, err error) {
	if d.Told != nil {
		d.Told(verb, err)
	}
}

// Denies reports whether op, which was answered, denies its request.
func Denies(op *store.Op) bool {
	return (op.Role == store.Enforce || op.Role == store.Look) && !op.Result.Allowed
}

func anyDenies(ops []store.Op) bool {
	for i := range ops {
		if Denies(&ops[i]) {
			return true
		}
	}
	return false
}

// IsDenied reports whether the request of t, which was decided, is denied.
func (t *Task) IsDenied() bool { return t.refused() || anyDenies(t.Ops) }
