package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/record"
	"github.com/weirhq/weir/cmd/weir/internal/telemetry"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// observer is the observer of a namespace's engine: it passes each decision on to the metrics, the
// top keys, the events, the episodes of outages, the log of denials, the traces and the recorder of requests.
type observer struct {
	*metrics.Namespace
	name     string         // of the namespace
	tops     *top.Collector // or nil
	events   *events.Watcher
	episodes *episodes
	traces   *telemetry.Telemetry // nil: no spans
	denials  *slog.Logger         // nil: they are not logged
	keys     top.KeyText          // of denials
	requests *record.Requests     // nil: they are not recorded
}

// Decided implements [weir.Observer].
func (o *observer) Decided(ctx context.Context, verb store.Verb, d *weir.Decision, took time.Duration) {
	o.Namespace.Decided(ctx, verb, d, took)
	o.tops.Decided(ctx, verb, d, took)
	o.events.Decided(ctx, verb, d, took)
	if d.Degraded {
		o.episodes.degraded()
	}
	if o.denials != nil && verb == store.Take && !d.Allowed {
		o.deny(d)
	}
	if o.traces != nil {
		o.traces.Decided(ctx, o.name, verb, d, took)
	}
}

// Requested is called before Decided for a request that was decided.
func (o *observer) Requested(verb store.Verb, r *weir.Request, d *weir.Decision, matched []int, values []string, began time.Time) {
	o.tops.Requested(verb, r, d, matched, values, began)
	o.requests.Requested(verb, r, d, matched, values, began)
}

// Ended is called for the end or the renewal of a hold (hook.HoldObserver).
func (o *observer) Ended(verb store.Verb, id [12]byte) { o.events.Ended(verb, id) }

// Failed implements [weir.Observer].
func (o *observer) Failed(ctx context.Context, verb store.Verb, err error) {
	o.Namespace.Failed(ctx, verb, err)
	if o.traces != nil {
		o.traces.Failed(ctx, o.name, verb, err)
	}
}

// Outage implements [weir.Observer].
func (o *observer) Outage(_ context.Context, _ store.Verb, err error) { o.episodes.outage(err) }

// deny logs a denial.
func (o *observer) deny(d *weir.Decision) {
	fields := []any{"rule", d.Rule, "outcome", d.Outcome}
	if u := top.UsageOf(d, d.Rule); u != nil {
		if key, shown := o.keys.Of(u.Key); shown {
			fields = append(fields, "key", key)
		}
	}
	if d.RetryAfter != window.Never {
		fields = append(fields, "retry_after", d.RetryAfter.String())
	}
	o.denials.Debug("denied", fields...)
}
