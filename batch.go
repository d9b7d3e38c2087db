package weir

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/drive"
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

// each decides each of several items by itself.
func (e *Engine) each(ctx context.Context, items []Item, o *run.Options) (allowed bool, err error) {
	rules, err := e.ready()
	if err != nil {
		return false, err
	}
	var began time.Time
	if e.observer != nil {
		began = time.Now()
	}
	b := batch{engine: e, items: items, calls: make([]*call, len(items))}
	var size run.Size
	for i := range items {
		item := &items[i]
		item.Decision.reset()
		c := e.calls.Get().(*call)
		b.calls[i] = c
		by := rules
		if item.Request.Rules != nil {
			by = e.prepared(item.Request.Rules)
		}
		item.Err = c.plan(by, &e.seals, item.Verb, &item.Request, nil)
		if addPlan(&size, &c.request); o.IsTooLarge(size) {
			b.calls = b.calls[:i+1] // the rest need not be planned
			break
		}
	}
	if err = o.Check(size); err != nil {
		for i, c := range b.calls {
			if e.observer != nil {
				e.tell(ctx, items[i].Verb, nil, err, began)
			}
			c.reset()
			e.calls.Put(c)
		}
		return false, err
	}
	b.run(ctx)
	allowed = true
	for i, c := range b.calls {
		item := &items[i]
		if item.Err == nil {
			v := verdictOf(&c.request, &c.now)
			if v.write(&item.Decision); item.Decision.Allowed {
				item.Decision.hold(&c.request, &c.now)
			}
		}
		allowed = allowed && item.Err == nil && item.Decision.Allowed
		if e.observer != nil {
			e.tell(ctx, item.Verb, &item.Decision, item.Err, began)
		}
		c.reset()
		e.calls.Put(c)
	}
	return allowed, nil
}

// batch is items on their way through the engine.
type batch struct {
	engine *Engine
	items  []Item
	calls  []*call // of items
}

// run decides the items. An item whose rules behind a verdict wait for its own
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
	d.Run(ctx, tasks...)
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
