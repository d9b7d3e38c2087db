package weir

import (
	"slices"

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
	if !slices.ContainsFunc(t.Ops, func(op store.Op) bool { return op.Result.Held }) {
		return Receipt{}
	}
	r := seal.Take{ID: p.Request.ID}
	if t.Local {
		r.Place = seal.Local
	}
	p.Receipt(&r, t.Ops)
	return Receipt{Take: p.Request.Key.Seal(r)}
}
