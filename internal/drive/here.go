package drive

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirhq/weir/store"
)

// What local memory held in an outage is in two places once it was reported: in
// memory, and in the store. So both are asked to end it: memory first, which
// cannot be out of reach.

// endHere ends or renews the holds of t in local memory, if t was decided there.
func (l *Local) endHere(ctx context.Context, t *Task) {
	if !t.Here {
		return
	}
	ops := slices.Clone(t.Ops)
	for i := range ops {
		hold := *ops[i].Hold
		ops[i].Hold, ops[i].Limit = &hold, l.share(ops[i].Limit)
	}
	if err := store.Do(context.WithoutCancel(ctx), l.Store, t.Verb, ops); err != nil {
		l.tell(ctx, t.Verb, fmt.Errorf("holds in local memory: %w", err))
		return
	}
	for i := range ops {
		op := &ops[i]
		if t.Verb == store.Cancel && op.Limit.HoldLength() == 0 {
			t.Ops[i].N = 0 // what the store has of it was reported, and stays
		}
		switch {
		case !op.Result.Held && t.Verb == store.Cancel:
			l.Reports.Sub(op, op.Result.Before-op.Result.Used)
			continue
		case !op.Result.Held:
			continue
		case t.Verb == store.Settle:
			l.Reports.End(op, max(op.N, -1))
		case t.Verb == store.Cancel:
			l.Reports.End(op, 0)
		default:
			l.Reports.Renew(op)
		}
		t.found = append(t.found, t.Of[i])
	}
}

// foundHere marks the ops of t whose holds were found in local memory.
func (t *Task) foundHere() {
	for i, of := range t.Of {
		if slices.Contains(t.found, of) {
			t.Ops[i].Result.Held = true
		}
	}
}
