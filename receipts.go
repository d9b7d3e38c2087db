package weir

import (
	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// hold writes into d what a take that was admitted holds.
func (d *Decision) hold(p *plan.Plan, t *drive.Task) {
	d.Receipt = receiptOf(p, t)
	if d.Receipt.IsZero() {
		return
	}
	for n, i := range t.Of {
		if !t.Ops[n].Result.Held {
			continue
		}
		r := p.Rules.Rule(i)
		length := r.Hold
		if r.Window.Kind == window.KindHeld {
			length = r.Window.Length
		}
		if d.Hold == 0 || length < d.Hold {
			d.Hold = length
		}
	}
}

// receiptOf returns the receipt of a take that was admitted. It is zero if the
// take holds nothing.
func receiptOf(p *plan.Plan, t *drive.Task) Receipt {
	if p.Request.ID == [12]byte{} {
		return Receipt{}
	}
	r := seal.Take{ID: p.Request.ID}
	held, wall := false, false
	for i := range t.Ops {
		op := &t.Ops[i]
		switch {
		case !op.Result.Held:
		case op.Limit.OnCalendar():
			held, wall, r.Wall = true, true, op.Hold.Decided
		default:
			held, r.At = true, op.Hold.Decided
		}
	}
	if !held {
		return Receipt{}
	}
	// Ops without a hold may have decided by the other clock.
	for i := range t.Ops {
		op := &t.Ops[i]
		switch {
		case op.Hold == nil:
		case op.Limit.OnCalendar() && !wall:
			wall, r.Wall = true, op.Hold.Decided
		case !op.Limit.OnCalendar() && r.At == 0:
			r.At = op.Hold.Decided
		}
	}
	if !wall {
		r.Wall = r.At
	} else if r.At == 0 {
		r.At = r.Wall
	}
	if t.Local {
		r.Place = seal.Local
	}
	r.Digest = p.Digest(t.Ops, t.Of, func(op *store.Op) bool {
		at := r.At
		if op.Limit.OnCalendar() {
			at = r.Wall
		}
		return op.Hold != nil && op.Hold.Decided == at
	})
	return Receipt{Take: p.Request.Key.Seal(r)}
}
