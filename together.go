package weir

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// TakeTogether takes the requests of items as one action, in one atomic step: all
// of them are counted, or none. It reports whether they were. If one request
// exceeds a limit, the others are evaluated and count only where a denied take
// does; see [Engine.Take]. Requests with the same key under the same rule count
// together there: both fit, or neither.
//
// It writes a Decision into each item. Allowed in it is the answer to this request
// alone. The items' Verb and Err are ignored. A nil admit admits all; see
// [Engine.DoIf]. After an error nothing was counted.
func (e *Engine) TakeTogether(ctx context.Context, items []Item, admit func(Size) error) (allowed bool, err error) {
	rules, err := e.ready()
	if err != nil {
		return false, err
	}
	if len(items) == 1 {
		d := &items[0].Decision
		err := e.DoIf(ctx, Take, &items[0].Request, d, admit)
		return d.Allowed && err == nil, err
	}
	var began time.Time
	if e.observer != nil {
		began = time.Now()
	}
	j, ok := e.joints.Get().(*joint)
	if !ok {
		j = new(joint)
	}
	var size Size
	for i := range items {
		by := rules
		if other := items[i].Request.Rules; other != nil {
			by = e.prepared(other)
		}
		items[i].Decision.reset()
		c := e.calls.Get().(*call)
		j.calls = append(j.calls, c)
		if err = c.plan(by, &e.seals, Take, &items[i].Request, nil); err != nil {
			break
		}
		if size.addPlan(&c.request); e.maxSize > 0 && size.Bytes() > e.maxSize {
			err = ErrLarge
			break
		}
	}
	if err == nil && admit != nil {
		err = admit(size)
	}
	if err == nil {
		allowed, err = j.run(ctx, &e.driver)
	}
	for i, c := range j.calls {
		if err == nil {
			d, v := &items[i].Decision, verdictOf(&c.request, &c.now)
			if v.write(d); allowed {
				d.hold(&c.request, &c.now)
			}
		}
		if e.observer != nil {
			e.tell(ctx, Take, &items[i].Decision, err, began)
		}
		c.reset()
		e.calls.Put(c)
	}
	j.reset()
	e.joints.Put(j)
	return allowed, err
}

// joint is several requests on their way through the engine as one. Joints are
// pooled, so that their memory is reused.
type joint struct {
	calls []*call
	task  drive.Task
	from  []origin // of the ops of task, by Of
	sent  []int    // for the ops of all calls: the op of task that asks for it

	// index finds the ops of task by their space and key, if there are many.
	index map[opKey]int
}

// opKey is what no two ops of a call may share.
type opKey struct{ namespace, id, key string }

// manyOps is the number of ops from which a joint has an index.
const manyOps = 64

// origin is the op of a call.
type origin struct {
	call, rule int
	n          int // of the op in its call
}

// OnOutage implements [drive.Policies].
func (j *joint) OnOutage(of int) rule.Outage {
	o := j.from[of]
	return j.calls[o.call].request.Rules.OnOutage(o.rule)
}

// run decides the calls of j, which are planned, in one step. It reports whether
// they are allowed.
func (j *joint) run(ctx context.Context, d *drive.Driver) (allowed bool, err error) {
	for _, c := range j.calls {
		j.task.Refused = j.task.Refused || c.now.Refused || c.unmatched()
	}
	if err := j.gather(); err != nil {
		return false, err
	}
	t := &j.task
	t.Verb, t.Policies, t.Denied = store.Take, j, -1
	if len(t.Ops) == 0 {
		err = ctx.Err()
	} else if d.Run(ctx, t); t.Err != nil {
		j.calls[0].now.Verb, j.calls[0].now.Err = store.Take, t.Err
		err = j.calls[0].failed()
	}
	if err != nil {
		return false, err
	}
	allowed = !t.IsDenied()
	j.spread()
	for _, c := range j.calls {
		if len(c.later.Ops) > 0 {
			c.finish(d, !allowed)
		}
	}
	return allowed, nil
}

// unmatched reports whether no rule matches the request, and its outcome denies.
func (c *call) unmatched() bool {
	if len(c.request.Matched) > 0 {
		return false
	}
	_, allows := c.request.Rules.Unmatched()
	return !allows
}

// gather makes one list of the ops of all calls. Ops on one key become one.
func (j *joint) gather() error {
	t := &j.task
	for k, c := range j.calls {
		for n := range c.now.Ops {
			op := &c.now.Ops[n]
			if t.Refused && op.Role == store.Enforce {
				op.Role = store.Look
			}
			at := j.find(op)
			j.sent = append(j.sent, at)
			if at < len(t.Ops) {
				if err := merge(&t.Ops[at], op); err != nil {
					return err
				}
				continue
			}
			t.Ops, t.Of = append(t.Ops, *op), append(t.Of, at)
			if j.index != nil {
				j.index[keyOf(op)] = at
			}
			j.from = append(j.from, origin{k, c.now.Of[n], n})
		}
	}
	return nil
}

// find returns the op of the task on the same key as op, or their number.
func (j *joint) find(op *store.Op) int {
	if ops := j.task.Ops; len(ops) >= manyOps {
		if j.index == nil {
			j.index = make(map[opKey]int, 2*len(ops))
			for i := range ops {
				j.index[keyOf(&ops[i])] = i
			}
		}
		if at, ok := j.index[keyOf(op)]; ok {
			return at
		}
		return len(ops)
	}
	for i := range j.task.Ops {
		if other := &j.task.Ops[i]; other.Space.Same(op.Space) && bytes.Equal(other.Key, op.Key) {
			return i
		}
	}
	return len(j.task.Ops)
}

func keyOf(op *store.Op) opKey {
	return opKey{op.Space.Namespace(), op.Space.ID(), string(op.Key)}
}

// merge adds the hits of op to another op on its key. Of two quotas the smaller
// one counts.
func merge(to, op *store.Op) error {
	if op.Limit.Measure == window.Distinct {
		if !bytes.Equal(to.Member, op.Member) {
			return fault.Newf("requests", "two of them count different members of %s for one key: want them one by one", op.Space.Name())
		}
	} else {
		to.N = min(to.N+op.N, window.MaxHits+1)
	}
	if q := op.Limit.Capacity(); q >= 0 && q < to.Limit.Capacity() {
		to.Limit = op.Limit
	}
	if to.Role == store.Look {
		to.Role = op.Role
	}
	return nil
}

// spread gives the answers of the task to the calls.
func (j *joint) spread() {
	t := &j.task
	next := 0
	for k, c := range j.calls {
		left := 0
		now := &c.now
		now.Outage, now.Reason, now.RetryAfter, now.Local, now.Denied = t.Outage, t.Reason, t.RetryAfter, t.Local, -1
		if t.Denied >= 0 && j.from[t.Denied].call == k {
			now.Denied = j.from[t.Denied].rule
		}
		for n := range now.Ops {
			at := j.sent[next]
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
			if o := j.from[at]; o.call != k || o.n != n {
				op.Result.Held = false // the hold has the receipt of the other request
			}
			now.Ops[left], now.Of[left] = now.Ops[n], now.Of[n]
			left++
		}
		clear(now.Ops[left:])
		now.Ops, now.Of = now.Ops[:left], now.Of[:left]
	}
}

// reset drops what j refers to.
func (j *joint) reset() {
	clear(j.calls)
	clear(j.task.Ops)
	j.index = nil
	j.calls, j.from, j.sent = j.calls[:0], j.from[:0], j.sent[:0]
	j.task.Ops, j.task.Of, j.task.Refused = j.task.Ops[:0], j.task.Of[:0], false
	j.task.Reset()
}
