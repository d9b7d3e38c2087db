package weir

import (
	"context"

	"github.com/weirhq/weir/internal/run"
)

// DoAll runs each item as [Engine.Do] would, and writes its Decision or its Err.
// The batch is not one atomic step: each item is decided on its own. Items that
// share a key are decided in their order. A store over the network gets many of
// them in one round trip, so a batch is several times faster than one call for
// each item. An item ends a round trip if it has limits before a verdict that
// allows, and rules behind it ([rule.Rule]'s CountRest), because these rules wait for
// the outcome of the limits.
func (e *Engine) DoAll(ctx context.Context, items []Item) {
	if _, err := e.Run(ctx, items, run.Options{}); err != nil {
		for i := range items {
			items[i].Err = err
		}
	}
}

// Run decides items for weir's own service, as o says; other programs call
// [Engine.DoAll]. It reports whether all items are allowed. It returns an error
// that is about all items, such as that of Admit; then nothing was counted. The error of
// one of them is in the item; if it is the only item, Run returns the error, too.
//
// With Together Run takes the requests as one action, in one atomic step: all of them
// are counted, or none. If one request exceeds a limit, the others are evaluated and
// count only where a denied take does; see [Engine.Take]. Requests with the same key
// under the same rule count together there: both fit, or neither. Allowed in each
// Decision is the answer to this request alone. The items' Verb and Err are ignored.
func (e *Engine) Run(ctx context.Context, items []Item, o run.Options) (allowed bool, err error) {
	if len(items) != 1 {
		return e.several(ctx, items, &o)
	}
	it := &items[0]
	if err = e.one(ctx, verbOf(it, &o), &it.Request, &it.Decision, &o); !o.Refused() {
		it.Err = err
	}
	return err == nil && it.Decision.Allowed, err
}
