package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir/store"
)

// do runs verb for ops in memory.
func (d *Driver) do(ctx context.Context, l *local, verb store.Verb, ops []store.Op) error {
	l.call[0] = store.Call{Verb: verb, Ops: ops}
	if err := d.Local.Do(ctx, l.call[:]); err != nil {
		return err
	}
	return l.call[0].Err
}

// askLocal answers the local ops, from the one numbered from on, from memory.
// Ops for which memory has no room are answered by their policies alone.
func (d *Driver) askLocal(ctx context.Context, t *Task, from int) error {
	l := &t.local
	for from < len(l.ops) {
		if t.refused() {
			readOnly(l.ops[from:])
		}
		err := d.do(ctx, l, t.Verb, l.ops[from:])
		if err == nil {
			break
		}
		var out *store.OutageError
		if !errors.As(err, &out) {
			l.cut(from)
			return err
		}
		t.wait(out)
		left := from
		for i := from; i < len(l.ops); i++ {
			if out.Ops == nil || slices.Contains(out.Ops, i-from) {
				t.decideAlone(&l.ops[i], l.of[i])
				continue
			}
			l.ops[left], l.of[left], l.limits[left] = l.ops[i], l.of[i], l.limits[i]
			left++
		}
		l.cut(left)
	}
	if !anyDenies(l.ops[from:]) {
		return nil
	}
	l.denied = true
	for i := range l.ops[from:] {
		if op := &l.ops[from+i]; op.Role == store.Enforce && !op.CountDenied {
			op.N = 0 // memory has counted none of these
		}
	}
	return nil
}

// settle ends a task that met an outage: it merges the local ops into the
// others, after giving back what they counted when another op has denied the
// take since.
func (d *Driver) settle(ctx context.Context, t *Task) {
	if len(t.found) > 0 {
		defer t.foundHere()
	}
	if t.Outage == nil || t.Err != nil {
		return
	}
	if t.Verb == store.Take && t.IsDenied() {
		d.giveBack(ctx, t, func(op *store.Op) bool { return op.Role == store.Enforce && !op.CountDenied })
	}
	d.note(ctx, t)
	for n, of := range t.local.of {
		t.Local = t.Local || t.local.ops[n].Result.Held
		at, _ := slices.BinarySearch(t.Of, of)
		t.Of = slices.Insert(t.Of, at, of)
		t.Ops = slices.Insert(t.Ops, at, t.local.ops[n])
	}
}

// giveBack takes back what the local ops that pick picks have counted. Memory
// forgets it as if it had not been.
func (d *Driver) giveBack(ctx context.Context, t *Task, pick func(*store.Op) bool) {
	if t.Verb != store.Take && t.Verb != store.Record {
		return
	}
	var ops []store.Op
	var of []int
	for i := range t.local.ops {
		if op := &t.local.ops[i]; op.N > 0 && op.Result.Allowed && pick(op) {
			ops, of = append(ops, *op), append(of, i)
		}
	}
	if len(ops) == 0 {
		return
	}
	verb := store.Refund
	if cancels(ops) {
		verb = store.Cancel
	}
	if err := d.do(context.WithoutCancel(ctx), &t.local, verb, ops); err != nil {
		d.tell(verb, fmt.Errorf("give back what a denied take counted in local memory: %w", err))
		return
	}
	for n, i := range of {
		r := ops[n].Result
		r.Before, r.Held = r.Used, false
		t.local.ops[i].Result = r
	}
}

// cancels prepares ops, which one call has counted, to be cancelled. It reports
// false when the call held nothing, so that they are refunded.
func cancels(ops []store.Op) bool {
	for i := range ops {
		if ops[i].Hold == nil || (ops[i].Hold.ID == [12]byte{}) {
			return false
		}
	}
	for i := range ops {
		h := *ops[i].Hold
		h.At, h.Sure = h.Decided, true
		ops[i].Hold = &h
	}
	return true
}
