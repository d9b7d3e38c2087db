package weir

import (
	"context"
	"time"

	"github.com/weirhq/weir/store"
)

// Observer receives the decisions, errors and outages of an [Engine], a [Limiter]
// or a [Counter], for metrics, logs and traces; see [WithObserver]. Its methods get
// the context of the call. They are called on the caller's goroutine before the call
// returns, so they should be quick. They can be called concurrently.
type Observer interface {
	// Decided is called after each decision. took is the time of the decision,
	// or that of the whole batch for a request in a batch. In the decision of a
	// limiter or a counter, the name set by [WithName] stands for the name of a
	// rule. Decided must not keep d or its slices.
	Decided(ctx context.Context, verb store.Verb, d *Decision, took time.Duration)

	// Failed is called for each request that gets an error: bad input, a done
	// context or a closed store.
	Failed(ctx context.Context, verb store.Verb, err error)

	// Outage is called when the store cannot answer, with the cause as err,
	// before the outage policies decide. It is also called, with the verb
	// [store.Refund], when the local store cannot take back what a denied request has
	// counted there.
	Outage(ctx context.Context, verb store.Verb, err error)
}
