package weir

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// DoAll runs each item as [Engine.Do] would, and writes its Decision or its Err.
// The batch is not one atomic step: each item is decided on its own. Items that
// share a key are decided in their order. A store over the network gets many of
// them in one round trip, so a batch is several times faster than one call for
// each item. An item ends a round trip if it has limits before a verdict that
// allows, and rules after it ([rule.Rule]'s CountRest), because these rules wait for
// the outcome of the limits.
func (e *Engine) DoAll(ctx context.Context, items []Item) {
	if _, err := e.Run(ctx, items, run.Options{}); err != nil {
		for i := range items {
			items[i].Err = err
		}
	}
}

// Run decides items for weir's own service, as o says; other programs call
// [Engine.DoAll]. It reports whether all items are allowed. The error of
// one item is in its Err. Run returns an error that is about all items, such as that of Admit,
// after which nothing was counted; and, if there is only one item, the error of that item.
//
// With Together Run takes the requests as one action, in one atomic step: all of them
// are counted, or none. If one request exceeds a limit, the others are evaluated and
// count only where a denied take does; see [Engine.Take]. Requests with the same key
// under the same rule count together there: both fit, or neither. Allowed in each
// Decision is the answer to this request only. The items' Verb and Err are ignored.
func (e *Engine) Run(ctx context.Context, items []Item, o run.Options) (allowed bool, err error) {
	if o.Assign != nil {
		return false, e.assign(ctx, items, o.Assign)
	}
	if len(items) == 1 {
		it := &items[0]
		it.Err = e.do(ctx, verbOf(it, &o), &it.Request, &it.Decision, &o)
		return it.Err == nil && it.Decision.Allowed, it.Err
	}
	rules, err := e.ready()
	if err != nil {
		return false, err
	}
	var began time.Time
	if e.observer != nil {
		began = time.Now()
	}
	b, ok := e.batches.Get().(*batch)
	if !ok {
		b = new(batch)
	}
	b.engine, b.items = e, items
	admitted := true // a request by itself is, unless its own decision denies it
	if err = b.plan(rules, &o); err == nil {
		if o.Together {
			admitted, err = b.group.run(ctx, &e.driver)
		} else {
			b.run(ctx)
		}
	}
	allowed = admitted
	for i, c := range b.calls {
		item, failed := &items[i], err
		if err == nil && !o.Together {
			failed = item.Err
		}
		if failed == nil {
			writeDecision(&item.Decision, &c.plan, &c.first, admitted)
			item.Decision.Replayed = c.first.Replayed()
		}
		allowed = allowed && failed == nil && item.Decision.Allowed
		if e.observer != nil {
			e.observe(ctx, verbOf(item, &o), c, &item.Request, &item.Decision, failed, began)
		}
		c.reset()
		e.calls.Put(c)
	}
	b.group.reset()
	clear(b.calls)
	b.engine, b.items, b.calls = nil, nil, b.calls[:0]
	e.batches.Put(b)
	return allowed, err
}

// verbOf returns the verb of an item.
func verbOf(it *Item, o *run.Options) store.Verb {
	if o.Together {
		return store.Take
	}
	return it.Verb
}

// batch is items on their way through the engine. Values of it are pooled, so that their
// memory is reused.
type batch struct {
	engine *Engine
	items  []Item
	calls  []*call // of items
	group  grouped // the calls as one
}

// plan plans the items, until one of them, or o, refuses all of them.
func (b *batch) plan(rules *plan.Rules, o *run.Options) error {
	var size run.Size
	for i := range b.items {
		item, by := &b.items[i], rules
		item.Decision.reset()
		if item.Request.Rules != nil {
			by = b.engine.rulesOf(item.Request.Rules)
		}
		c := b.engine.calls.Get().(*call)
		b.calls = append(b.calls, c)
		err := b.engine.read(c, by, verbOf(item, o), &item.Request)
		if err == nil && item.Request.isOnce() {
			c.once, err = newOnceCall(&b.engine.records, c.plan.Request.Verb, &item.Request, o)
		}
		if !o.Together {
			item.Err, err = err, nil
		}
		if err == nil {
			err = c.addSize(&size, o)
		}
		if err != nil {
			return err
		}
	}
	if o.Together {
		if err := b.group.plan(b.calls); err != nil {
			return err
		}
		if err := b.engine.fits("requests", len(b.group.task.Ops)); err != nil {
			return err
		}
	}
	if o.Admit == nil {
		return nil
	}
	return o.Admit(size)
}

// run decides each item by itself, each in one step of the store, and as many as possible
// in one call of it: all up to an item whose rules after a verdict wait for its outcome.
// The next ones are decided after those rules.
func (b *batch) run(ctx context.Context) {
	d := &b.engine.driver
	tasks := make([]*drive.Task, 0, len(b.calls))
	for from, end := 0, 0; from < len(b.calls); from = end {
		done := ctx.Err()
		tasks = tasks[:0]
		for end = from; end < len(b.calls); {
			c, item := b.calls[end], &b.items[end]
			switch {
			case item.Err != nil:
			case len(c.first.Ops) > 0:
				if c.once != nil {
					item.Err = c.beginOnce()
				}
				if item.Err == nil {
					tasks = append(tasks, &c.first)
				}
			default:
				c.first.Denied, item.Err = -1, done
				if done == nil && c.once != nil {
					item.Err = c.lookOnce(ctx, d)
				}
			}
			if end++; len(c.second.Ops) > 0 {
				break
			}
		}
		d.RunAll(ctx, tasks)
		for i, c := range b.calls[from:end] {
			item := &b.items[from+i]
			if c.first.Replayed() {
				c.endOnce()
			}
			if c.first.Err != nil {
				item.Err = c.failed()
			}
			if item.Err == nil && len(c.second.Ops) > 0 {
				c.finish(d, c.first.IsDenied())
			}
		}
	}
}
