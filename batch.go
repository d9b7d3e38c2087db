package weir

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// Item is one request of a batch for [Engine.DoAll], and its answer.
type Item struct {
	// Verb is what to do with the request. Its zero value is [store.Check], which
	// counts nothing. Over HTTP a request without a verb is a take.
	Verb store.Verb

	Request Request

	// Decision is the answer. [Engine.DoAll] reuses its slices.
	Decision Decision

	// Err is the error of this item, or nil. After an error nothing was counted
	// for the item, and Decision holds no answer.
	Err error
}

// several decides several items, each by itself or all together.
func (e *Engine) several(ctx context.Context, items []Item, o *run.Options) (allowed bool, err error) {
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
	if err = b.plan(rules, o); err == nil {
		if o.Together {
			b.group.calls = b.calls
			admitted, err = b.group.run(ctx, &e.driver)
			b.group.reset()
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
			c.write(&item.Decision, admitted)
		}
		allowed = allowed && failed == nil && item.Decision.Allowed
		if e.observer != nil {
			e.tell(ctx, verbOf(item, o), &item.Decision, failed, began)
		}
		c.reset()
		e.calls.Put(c)
	}
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
			by = b.engine.prepared(item.Request.Rules)
		}
		c := b.engine.calls.Get().(*call)
		b.calls = append(b.calls, c)
		err := c.plan(by, &b.engine.seals, verbOf(item, o), &item.Request, nil)
		if !o.Together {
			item.Err = err
		} else if err != nil {
			return err
		}
		if addPlan(&size, &c.request); o.IsTooLarge(size) {
			break // the rest need not be planned
		}
	}
	return o.Check(size)
}

// run decides each item by itself. An item whose rules behind a verdict wait for its own
// outcome ends a stretch: the next one is decided after them.
func (b *batch) run(ctx context.Context) {
	from := 0
	for i, c := range b.calls {
		if len(c.later.Ops) > 0 || i == len(b.calls)-1 {
			b.stretch(ctx, from, i+1)
			from = i + 1
		}
	}
}

// stretch decides the items from the one numbered from up to end, each in one
// step of the store, all in one call.
func (b *batch) stretch(ctx context.Context, from, end int) {
	done := ctx.Err()
	tasks := make([]*drive.Task, 0, end-from)
	for i, c := range b.calls[from:end] {
		item := &b.items[from+i]
		switch {
		case item.Err != nil:
		case len(c.now.Ops) > 0:
			tasks = append(tasks, &c.now)
		default:
			c.now.Denied, item.Err = -1, done
		}
	}
	d := &b.engine.driver
	d.RunAll(ctx, tasks)
	for i, c := range b.calls[from:end] {
		item := &b.items[from+i]
		if c.now.Err != nil {
			item.Err = c.failed()
		}
		if item.Err == nil && len(c.later.Ops) > 0 {
			c.finish(d, c.now.IsDenied())
		}
	}
}
