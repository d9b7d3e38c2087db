package drive

import (
	"context"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// note gives the reporter what memory has counted for t, which is decided and
// has given back what it had to. If the reporter keeps it on a disk for which calls
// wait, note waits for it, too.
func (d *Driver) note(ctx context.Context, t *Task) {
	if d.Reports == nil || t.Verb == store.Check || t.Verb.Ends() {
		return
	}
	denied := t.Verb == store.Take && t.IsDenied()
	for i := range t.local.ops {
		op := &t.local.ops[i]
		if t.Verb == store.Refund {
			d.Reports.Sub(op, given(op))
			continue
		}
		switch {
		case op.Result.Held:
			d.Reports.Hold(op, t.local.limits[i], op.N)
		case t.Verb == store.Record || counts(op, denied):
			d.Reports.Add(op, t.local.limits[i], op.N)
		}
	}
	if len(t.local.ops) > 0 {
		d.Reports.Wait(ctx)
	}
}

// given returns how many hits memory has given back for op, which is part of a
// refund.
func given(op *store.Op) int64 {
	if op.Limit.Measure == window.Distinct || op.Limit.After.Count > 0 { // one use, or hits that Used leaves out
		return op.N
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
