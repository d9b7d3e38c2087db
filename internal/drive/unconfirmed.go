package drive

import (
	"context"
	"slices"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Unconfirmed handles results of t that too few replicas have confirmed. They hold, unless the policy of an op denies the take or
// the reserve. Then the store gives back what it has counted, if it answers. A take with a record gives nothing back, because the
// record admits the call when it is repeated.
func Unconfirmed(ctx context.Context, d *Driver, t *Task, out *store.OutageError) {
	if t.Verb != store.Take && t.Verb != store.Reserve {
		return
	}
	var ops []store.Op
	var at []int
	for i := range t.Ops {
		op := &t.Ops[i]
		if (out.Ops == nil || slices.Contains(out.Ops, i)) && !d.isLocal(t, t.Of[i]) {
			t.decideByPolicy(op, t.Of[i])
		}
		counted := op.Result.Held
		if t.Verb == store.Take {
			counted = t.Once == nil && op.Role == store.Enforce && !op.CountDenied && op.N > 0 && op.Result.Allowed
		}
		if counted {
			ops, at = append(ops, *op), append(at, i)
		}
	}
	if t.Denied < 0 || len(ops) == 0 {
		return
	}
	if verb, err := giveBack(ctx, d.Store, t.Verb, ops); !hook.HasResults(err) {
		d.reportOutage(ctx, verb, err)
		return
	}
	for n, i := range at {
		t.Ops[i].Result = givenBack(ops[n].Result)
	}
}

// giveBack gives back what ops of a call of verb v have counted in s, as if it had not been counted.
func giveBack(ctx context.Context, s store.Store, v store.Verb, ops []store.Op) (store.Verb, error) {
	verb := store.Refund
	switch {
	case v == store.Reserve:
		verb = store.Settle
	case !slices.ContainsFunc(ops, func(op store.Op) bool { return op.Hold == nil || op.Hold.ID == [12]byte{} }):
		verb = store.Cancel // which ends the holds, too
	}
	for i := range ops {
		if op := &ops[i]; verb != store.Refund {
			h := *op.Hold
			h.At, h.Sure, op.Hold = h.Decided, true, &h
			if verb == store.Settle {
				op.N = 0
			}
		}
	}
	return verb, store.Do(context.WithoutCancel(ctx), s, verb, ops)
}

// givenBack returns the result of an op that was given back with result r.
func givenBack(r window.Result) window.Result {
	r.Before, r.Held = r.Used, false
	return r
}
