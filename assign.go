package weir

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// assign grants parts of quotas to others who decide requests; see [run.Options]. Each of assignments is about
// the request of the item with the same index, and has its answer afterwards. A grant is a
// reservation in every limit that matches the request ([store.Hold]), so no window has more than the quota if it is spent within
// its length. It ends earlier if a period does. Rules that do not decide, and those in shadow mode, record what was
// used. A limit that cannot be reserved ([window.Compiled.CanReserve]), that counts a sum, or whose counts are exported, grants
// nothing.
//
// It tells the observer of a take of all that was used, and of one of all that was denied, with the numbers before the grant.
//
// If the store cannot answer, the policies of the limits decide: what local memory grants is taken there at once, and where a policy
// allows, all that was wanted is granted. What the store has only not confirmed is granted, unless a policy denies.
func (e *Engine) assign(ctx context.Context, items []Item, assignments []run.Assignment) error {
	rules, err := e.ready()
	if err != nil {
		return err
	}
	list := make([]assigning, len(items))
	defer func() {
		for i := range list {
			if c := list[i].call; c != nil {
				c.reset()
				e.calls.Put(c)
			}
		}
	}()
	var tasks []*drive.Task
	began := time.Now()
	for i := range list {
		g, a := &list[i], &assignments[i]
		g.call, a.Answer = e.calls.Get().(*call), run.Answer{}
		if a.Err = e.read(g.call, rules, store.Take, &items[i].Request); a.Err == nil {
			g.sort(a)
			tasks = append(tasks, g.tasks(a)...)
			if g.seen.Policies = g.call.plan.Rules; e.observer != nil && a.Used+a.Denied > 0 {
				g.seen.Ops = append(append(g.seen.Ops, g.limits...), g.others...)
				g.seen.Of = append(append(g.seen.Of, g.of...), g.ofOthers...)
				if g.seen.Denied = -1; len(g.seen.Ops) > 0 {
					tasks = append(tasks, &g.seen)
				}
			}
		}
	}
	if len(tasks) > 0 {
		e.driver.RunAll(context.WithoutCancel(ctx), tasks) // what was used counts
	}
	if e.observer != nil {
		for i := range list {
			e.observeAssigned(ctx, &list[i], items[i].Request, &assignments[i], began)
		}
	}
	var calls []store.Call
	var of []int
	for i := range list {
		if call, ok := list[i].reserve(&assignments[i]); ok {
			calls, of = append(calls, call), append(of, i)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	began = time.Now()
	err = e.driver.Store.Do(ctx, calls)
	for n, i := range of {
		a := &assignments[i]
		list[i].reserved(ctx, &e.driver, a, calls[n].Ops, cmp.Or(err, calls[n].Err))
		a.Lasts -= min(time.Since(began), a.Lasts)
	}
	return nil
}

// assigning is an assignment on its way through the engine.
type assigning struct {
	call           *call
	limits, others []store.Op // those that decide, and the rest
	of, ofOthers   []int
	never          bool       // a limit cannot be reserved
	seen           drive.Task // a look at all of them, for the observer
}

// assignable reports whether parts of l can be granted. Where its counts are exported they cannot: what was granted and
// not reported before the end of a period would be exported as used.
func assignable(l *window.Compiled) bool {
	return l.CanReserve() && l.Measure == window.Count && !l.Export
}

// decides reports whether op is of a limit that can deny.
func decides(op *store.Op) bool {
	return (op.Role == store.Enforce || op.Role == store.Look) && op.Limit.Quota != window.Unlimited
}

// sort sorts the ops of the plan into those of limits that decide, and the others.
func (g *assigning) sort(a *run.Assignment) {
	p := &g.call.plan
	for n, op := range p.First.Ops {
		if !decides(&op) {
			g.others, g.ofOthers = append(g.others, op), append(g.ofOthers, p.First.Of[n])
			continue
		}
		g.never = g.never || !assignable(op.Limit)
		g.limits, g.of = append(g.limits, op), append(g.of, p.First.Of[n])
	}
	g.others, g.ofOthers = append(g.others, p.Second.Ops...), append(g.ofOthers, p.Second.Of...)
	_, allows := p.Rules.Unmatched()
	g.never = g.never || p.Refused() || len(p.Matched) == 0 && !allows
	a.All = !g.never && len(g.limits) == 0
}

// tasks returns what there is to record and to settle.
func (g *assigning) tasks(a *run.Assignment) (tasks []*drive.Task) {
	add := func(v store.Verb, ops []store.Op, of []int, each func(*store.Op)) {
		t := &drive.Task{Verb: v, Policies: g.call.plan.Rules}
		for n, op := range ops {
			if each(&op); op.N > 0 || v == store.Settle {
				t.Ops, t.Of = append(t.Ops, op), append(t.Of, of[n])
			}
		}
		if len(t.Ops) > 0 {
			tasks = append(tasks, t)
		}
	}
	times := func(n int64) func(*store.Op) {
		return func(op *store.Op) {
			if op.N = min(op.N, window.MaxHits/max(n, 1)) * n; op.Limit.Ban.For == 0 {
				op.Hold = nil // what was used is final
			}
		}
	}
	for _, s := range a.Settles {
		add(store.Settle, g.limits, g.of, func(op *store.Op) { op.N, op.Hold = s.Spent, &store.Hold{Hold: window.Hold{ID: s.ID}} })
	}
	add(store.Record, g.limits, g.of, times(a.Over))
	add(store.Record, g.others, g.ofOthers, times(a.Used))
	return tasks
}

// reserve returns the call for the grant, and whether there is one.
func (g *assigning) reserve(a *run.Assignment) (store.Call, bool) {
	if a.Err != nil || a.Want <= 0 || g.never || len(g.limits) == 0 {
		return store.Call{}, false
	}
	c := store.Call{Verb: store.Reserve, Ops: make([]store.Op, len(g.limits))}
	holds, id := make([]store.Hold, len(g.limits)), g.call.ids.next()
	for n, op := range g.limits {
		holds[n] = store.Hold{Hold: window.Hold{ID: id, End: window.Instant(a.Length.Microseconds())}, Least: a.Least, Part: a.Part}
		op.N, op.Hold, op.Result = a.Want, &holds[n], window.Result{}
		c.Ops[n] = op
	}
	return c, true
}

// reserved answers a after the reserve of ops, which had this error.
func (g *assigning) reserved(ctx context.Context, d *drive.Driver, a *run.Assignment, ops []store.Op, err error) {
	switch _, out := errors.AsType[*store.OutageError](err); {
	case err == nil:
		granted(a, ops)
	case hook.HasResults(err): // they hold, unless a policy denies
		t := &drive.Task{Verb: store.Reserve, Step: plan.Step{Ops: ops, Of: g.of}, Policies: g.call.plan.Rules}
		if d.Run(ctx, t, err); t.Denied < 0 {
			granted(a, ops)
		}
	case out:
		g.inOutage(ctx, d, a)
	default:
		a.Err = err
	}
}

// granted sets the answer to what the store has reserved for ops.
func granted(a *run.Assignment, ops []store.Op) {
	for n := range ops {
		switch op := &ops[n]; {
		case !op.Result.Held:
			a.Answer = run.Answer{Retry: max(a.Retry, op.Result.RetryAfter)}
		case a.Retry > 0:
		case n == 0:
			a.Granted, a.ID, a.Lasts = op.N, op.Hold.ID, op.Hold.End.Sub(op.Hold.Decided)
		default:
			a.Granted, a.Lasts = min(a.Granted, op.N), min(a.Lasts, op.Hold.End.Sub(op.Hold.Decided))
		}
	}
}

// inOutage takes what is granted from local memory, or grants all or nothing, as the policies say.
func (g *assigning) inOutage(ctx context.Context, d *drive.Driver, a *run.Assignment) {
	t := &drive.Task{Verb: store.Take, Step: plan.Step{Ops: g.limits, Of: g.of}, Policies: g.call.plan.Rules}
	for n := range t.Ops {
		op := &t.Ops[n]
		op.N, op.UpTo, op.Hold = min(a.Want, max(op.Limit.Quota/max(a.Part, 1), 1)), true, nil
	}
	d.Run(ctx, t, nil)
	if a.Err = t.Err; t.Err != nil || t.IsDenied() {
		return
	}
	a.Granted, a.Lasts = a.Want, a.Length
	for n := range t.Ops {
		a.Granted = min(a.Granted, t.Ops[n].N)
	}
}

// observeAssigned tells the observer what was decided by earlier grants: a take of all that was used, and one of all that was
// denied. The look at the ops of g was answered.
func (e *Engine) observeAssigned(ctx context.Context, g *assigning, r Request, a *run.Assignment, began time.Time) {
	if err := cmp.Or(a.Err, g.seen.Err); err != nil {
		e.observer.Failed(ctx, store.Take, err)
		return
	}
	for _, denied := range [...]bool{false, true} {
		if r.Hits = a.Used; denied {
			r.Hits = a.Denied
		}
		if r.Hits == 0 {
			continue
		}
		t := g.answered(r.Hits, denied)
		var d Decision
		if writeDecision(&d, &g.call.plan, &t, false); d.Allowed != denied {
			e.observe(ctx, store.Take, g.call, &r, &d, nil, began)
		}
	}
}

// answered returns the look at the ops of g as the answer to a take of hits that was admitted, or denied: by the limits that
// deny another hit now, or else by the one with the fewest hits left, of which more may be granted with the next report.
func (g *assigning) answered(hits int64, denied bool) drive.Task {
	t := g.seen
	t.Ops = slices.Clone(t.Ops)
	var least *window.Result
	for n := range t.Ops {
		op := &t.Ops[n]
		op.N *= min(hits, window.MaxHits/max(op.N, 1))
		r := &op.Result
		if !denied {
			r.Before = max(r.Used-op.N, 0)
		}
		switch {
		case !decides(op):
		case !denied:
			r.Allowed, r.RetryAfter = true, 0
		case !assignable(op.Limit):
			r.Allowed, r.RetryAfter = false, window.Never
		case least == nil || r.Remaining < least.Remaining:
			least = r
		}
	}
	if !denied {
		t.Denied = -1
	} else if least != nil && !t.IsDenied() {
		least.Allowed, least.RetryAfter = false, time.Second
	}
	return t
}
