package weir

import (
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// local is the part of a call that this process's memory answers because the
// store cannot.
type local struct {
	ops    []store.Op
	of     []int // ops[i] is of rule of[i]
	denied bool  // one of the ops denies
}

func (l *local) reset() {
	clear(l.ops)
	l.ops, l.of, l.denied = l.ops[:0], l.of[:0], false
}

// add adds an op of rule i, held to its share of the limit.
func (l *local) add(op store.Op, i int, share *window.Compiled) {
	op.Limit = share
	l.ops, l.of = append(l.ops, op), append(l.of, i)
}

// share returns what one of so many nodes may admit of l, a limit of s. Each
// share is compiled once.
func (s *ruleset) share(l *window.Compiled, nodes int64) *window.Compiled {
	key := shareOf{l, nodes}
	if known, ok := s.shares.Load(key); ok {
		return known.(*window.Compiled)
	}
	known, _ := s.shares.LoadOrStore(key, l.Share(nodes))
	return known.(*window.Compiled)
}

// shareOf is the key of a share in a ruleset.
type shareOf struct {
	limit *window.Compiled
	nodes int64
}

// askLocal has memory answer the local ops from the one numbered from on. Those
// that it has no room for are answered by their rules' policies alone.
func (c *call) askLocal(ctx context.Context, e *Engine, from int) error {
	l := &c.local
	for from < len(l.ops) {
		if c.refused() {
			hold(l.ops[from:])
		}
		err := e.local.Do(ctx, c.verb, l.ops[from:])
		if err == nil {
			break
		}
		var out *store.OutageError
		if !errors.As(err, &out) {
			l.ops, l.of = l.ops[:from], l.of[:from]
			return err
		}
		left := from
		for i := from; i < len(l.ops); i++ {
			if out.Ops == nil || slices.Contains(out.Ops, i-from) {
				c.decideAlone(&l.ops[i], l.of[i])
				continue
			}
			l.ops[left], l.of[left] = l.ops[i], l.of[i]
			left++
		}
		l.ops, l.of = l.ops[:left], l.of[:left]
	}
	if !slices.ContainsFunc(l.ops[from:], denies) {
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

func denies(op store.Op) bool { return op.Role == store.Enforce && !op.Result.Allowed }

// settle puts the local ops to the others, after giving back what they have
// counted when another one has denied since.
func (c *call) settle(ctx context.Context, e *Engine) {
	if c.verb == store.Take && (c.refused() || slices.ContainsFunc(c.ops, denies)) {
		c.giveBack(ctx, e, func(op *store.Op) bool { return op.Role == store.Enforce && !op.CountDenied })
	}
	for n, i := range c.local.of {
		at, _ := slices.BinarySearch(c.of, i)
		c.of = slices.Insert(c.of, at, i)
		c.ops = slices.Insert(c.ops, at, c.local.ops[n])
	}
}

// giveBack takes back what the local ops that pick picks have counted. Memory
// forgets it as if it had not been.
func (c *call) giveBack(ctx context.Context, e *Engine, pick func(*store.Op) bool) {
	if c.verb != store.Take && c.verb != store.Record {
		return
	}
	var ops []store.Op
	var of []int
	for i := range c.local.ops {
		if op := &c.local.ops[i]; op.N > 0 && op.Result.Allowed && pick(op) {
			ops, of = append(ops, *op), append(of, i)
		}
	}
	if len(ops) == 0 || e.local.Do(context.WithoutCancel(ctx), store.Refund, ops) != nil {
		return
	}
	for n, i := range of {
		r := ops[n].Result
		r.Before = r.Used
		c.local.ops[i].Result = r
	}
}
