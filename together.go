package weir

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// grouped is several requests that the engine takes as one action; see [Engine.Run].
type grouped struct {
	calls []*call
	task  drive.Task
	from  []origin // of the ops of task, by Of
	sent  []int    // for the ops of all calls: the op of task that asks for it

	// sorted are the ops of task, in the order of compareKeys.
	sorted []int
}

// opKey is what no two ops of a call may share.
type opKey struct{ namespace, id, key string }

// origin is the op of a call.
type origin struct {
	call, rule int
	n          int // of the op in its call
}

// OnOutage implements [drive.Policies].
func (g *grouped) OnOutage(of int) rule.Outage {
	o := g.from[of]
	return g.calls[o.call].plan.Rules.OnOutage(o.rule)
}

// plan makes one step of calls, which are planned.
func (g *grouped) plan(calls []*call) error {
	g.calls = calls
	for _, c := range g.calls {
		_, allows := c.plan.Rules.Unmatched()
		g.task.Refused = g.task.Refused || c.first.Refused || len(c.plan.Matched) == 0 && !allows
	}
	g.moveToSecondStep()
	return g.gather()
}

// run decides the calls of g, which is planned, in one step. It reports whether
// they are allowed.
func (g *grouped) run(ctx context.Context, d *drive.Driver) (allowed bool, err error) {
	t := &g.task
	t.Verb, t.Policies, t.Denied = store.Take, g, -1
	if len(t.Ops) == 0 {
		err = ctx.Err()
	} else if d.Run(ctx, t, nil); t.Err != nil {
		g.calls[0].first.Verb, g.calls[0].first.Err = store.Take, t.Err
		err = g.calls[0].failed()
	}
	if err != nil {
		return false, err
	}
	allowed = !t.IsDenied()
	g.spread()
	for _, c := range g.calls {
		if len(c.second.Ops) > 0 {
			c.finish(d, !allowed)
		}
	}
	return allowed, nil
}

// isAfterVerdict reports whether the op numbered n belongs to a rule after a verdict.
func (c *call) isAfterVerdict(n int) bool {
	return c.plan.VerdictRule >= 0 && c.first.Of[n] > c.plan.VerdictRule
}

// moveToSecondStep moves ops of rules after a verdict to the step after the one that decides,
// because they are not to count if another request is denied. An op stays if another one
// decides on its key: all hits of a key fit, or none.
func (g *grouped) moveToSecondStep() {
	if !slices.ContainsFunc(g.calls, func(c *call) bool { n := len(c.first.Ops); return n > 0 && c.isAfterVerdict(n-1) }) {
		return
	}
	deciding := map[opKey]bool{}
	for _, c := range g.calls {
		for n := range c.first.Ops {
			if op := &c.first.Ops[n]; op.Role == store.Enforce && !g.task.Refused {
				deciding[keyOf(op)] = true
			}
		}
	}
	if len(deciding) == 0 && !g.task.Refused {
		return
	}
	for _, c := range g.calls {
		now, later, left := &c.first, &c.second, 0
		for n, op := range now.Ops {
			if c.isAfterVerdict(n) && !deciding[keyOf(&op)] {
				later.Ops, later.Of = append(later.Ops, op), append(later.Of, now.Of[n])
				continue
			}
			now.Ops[left], now.Of[left] = op, now.Of[n]
			left++
		}
		clear(now.Ops[left:])
		now.Ops, now.Of = now.Ops[:left], now.Of[:left]
		if len(later.Ops) > 0 {
			c.planSecond()
		}
	}
}

// gather makes one list of the ops of all calls. Ops on one key become one.
func (g *grouped) gather() error {
	t := &g.task
	for k, c := range g.calls {
		for n := range c.first.Ops {
			op := &c.first.Ops[n]
			if t.Refused && op.Role == store.Enforce {
				op.Role = store.Look
			}
			from := origin{k, c.first.Of[n], n}
			i, found := slices.BinarySearchFunc(g.sorted, op, func(at int, op *store.Op) int { return compareKeys(&t.Ops[at], op) })
			if !found {
				g.sorted = slices.Insert(g.sorted, i, len(t.Ops))
				g.sent = append(g.sent, len(t.Ops))
				t.Ops, t.Of, g.from = append(t.Ops, *op), append(t.Of, len(t.Ops)), append(g.from, from)
				continue
			}
			at := g.sorted[i]
			g.sent = append(g.sent, at)
			to := &t.Ops[at]
			if err := merge(to, op); err != nil {
				return err
			}
			if holds(op) && !holds(to) { // what both hold has the receipt of this request
				to.Hold, g.from[at] = op.Hold, from
			}
		}
	}
	return nil
}

// holds reports whether op is part of a take with a receipt.
func holds(op *store.Op) bool { return op.Hold != nil && op.Hold.ID != [12]byte{} }

// compareKeys compares the keys of two ops. It returns 0 if they are on the same one.
func compareKeys(a, b *store.Op) int {
	return cmp.Or(bytes.Compare(a.Key, b.Key), strings.Compare(a.Space.ID(), b.Space.ID()), strings.Compare(a.Space.Namespace(), b.Space.Namespace()))
}

func keyOf(op *store.Op) opKey {
	return opKey{op.Space.Namespace(), op.Space.ID(), string(op.Key)}
}

// merge adds the hits of op to another op on its key, and makes that one as strict as
// both: of two quotas the smaller one counts, and of two roles the stricter one. An op
// that only looks brings no hits, unless it counts when it is denied.
func merge(to, op *store.Op) error {
	distinct := op.Limit.Measure == window.Distinct
	if distinct && !bytes.Equal(to.Member, op.Member) {
		return fault.Newf("requests", "two of them count different members of %s for one key: want them one by one", op.Space.Name())
	}
	n := to.N + op.N
	switch looks := func(op *store.Op) bool { return op.Role == store.Look && !op.CountDenied }; {
	case distinct, looks(op) && !looks(to):
		n = to.N
	case looks(to) && !looks(op):
		n = op.N
	}
	to.N = min(n, window.MaxHits+1)
	if uint64(op.Limit.Capacity()) < uint64(to.Limit.Capacity()) { // window.Unlimited is the largest
		to.Limit = op.Limit
	}
	if strictness[op.Role] > strictness[to.Role] {
		to.Role = op.Role
	}
	to.CountDenied = to.CountDenied || op.CountDenied
	return nil
}

// strictness orders roles by what they do to other ops and to their own counter.
var strictness = [...]int{store.Look: 0, store.Shadow: 1, store.Always: 2, store.Enforce: 3}

// spread gives the answers of the task to the calls.
func (g *grouped) spread() {
	t := &g.task
	next := 0
	for k, c := range g.calls {
		left := 0
		now := &c.first
		now.Outage, now.Reason, now.RetryAfter, now.Local, now.Denied = t.Outage, t.Reason, t.RetryAfter, t.Local, -1
		if t.Denied >= 0 && g.from[t.Denied].call == k {
			now.Denied = g.from[t.Denied].rule
		}
		for n := range now.Ops {
			at := g.sent[next]
			next++
			m, ok := slices.BinarySearch(t.Of, at)
			if !ok {
				continue // decided by its policy alone
			}
			op, from := &now.Ops[n], &t.Ops[m]
			op.Result = from.Result
			if op.Hold != nil && from.Hold != nil {
				op.Hold.Decided = from.Hold.Decided
			}
			if o := g.from[at]; o.call != k || o.n != n {
				op.Result.Held = false // the hold has the receipt of the other request
			}
			now.Ops[left], now.Of[left] = now.Ops[n], now.Of[n]
			left++
		}
		clear(now.Ops[left:])
		now.Ops, now.Of = now.Ops[:left], now.Of[:left]
	}
}

// reset drops what g refers to.
func (g *grouped) reset() {
	clear(g.task.Ops)
	g.calls = nil
	g.from, g.sent, g.sorted = g.from[:0], g.sent[:0], g.sorted[:0]
	g.task.Ops, g.task.Of, g.task.Refused = g.task.Ops[:0], g.task.Of[:0], false
	g.task.Reset()
}
