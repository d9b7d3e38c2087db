// Package weirotel records what engines, limiters and counters decide, with the API of
// OpenTelemetry:
//
//	observer, err := weirotel.New(otel.GetMeterProvider())
//	…
//	posts := weir.MustLimiter(weir.Sliding(5, time.Minute), weir.WithName("posts"), weir.WithObserver(observer))
//
// A decision that denies, an error and an outage are also events of the span in the context of the
// call, if there is one.
package weirotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
)

// Observer is a [weir.Observer] that records metrics and events. Make one with [New]. It is safe for
// concurrent use. Keys, and the texts of errors, which can have one, are never recorded.
//
//	weir.decisions          decisions, by weir.rule, weir.outcome, weir.verb and weir.degraded
//	weir.decision.duration  time of a decision, in seconds
//	weir.failures           requests that got an error, such as bad input, by weir.verb
//	weir.outages            calls that a store could not answer, by weir.reason
type Observer struct {
	decisions, failures, outages metric.Int64Counter
	duration                     metric.Float64Histogram
}

var _ weir.Observer = (*Observer)(nil)

// New returns an observer whose instruments are those of p. The error is that of p.
func New(p metric.MeterProvider) (*Observer, error) {
	m := p.Meter("github.com/weirhq/weir/contrib/weirotel")
	o := &Observer{}
	var errs [4]error
	o.decisions, errs[0] = m.Int64Counter("weir.decisions", metric.WithDescription("Decisions."))
	o.failures, errs[1] = m.Int64Counter("weir.failures", metric.WithDescription("Requests that were answered with an error, such as bad input."))
	o.outages, errs[2] = m.Int64Counter("weir.outages", metric.WithDescription("Calls that a store could not answer."))
	o.duration, errs[3] = m.Float64Histogram("weir.decision.duration", metric.WithUnit("s"), metric.WithDescription("Time of a decision."),
		metric.WithExplicitBucketBoundaries(1e-6, 4e-6, 16e-6, 64e-6, 256e-6, 1e-3, 4e-3, 16e-3, 64e-3, 0.25, 1))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return o, nil
}

// Decided implements [weir.Observer].
func (o *Observer) Decided(ctx context.Context, verb store.Verb, d *weir.Decision, took time.Duration) {
	attributes := []attribute.KeyValue{
		attribute.String("weir.rule", d.Rule), attribute.String("weir.outcome", d.Outcome),
		attribute.String("weir.verb", verb.String()), attribute.Bool("weir.degraded", d.Degraded),
	}
	o.decisions.Add(ctx, 1, metric.WithAttributes(attributes...))
	o.duration.Record(ctx, took.Seconds())
	if !d.Allowed {
		trace.SpanFromContext(ctx).AddEvent("weir: denied", trace.WithAttributes(attributes...))
	}
}

// Failed implements [weir.Observer].
func (o *Observer) Failed(ctx context.Context, verb store.Verb, _ error) {
	o.add(ctx, o.failures, "weir: not decided", attribute.String("weir.verb", verb.String()))
}

// Outage implements [weir.Observer].
func (o *Observer) Outage(ctx context.Context, _ store.Verb, err error) {
	reason := "unknown"
	if out, ok := errors.AsType[*store.OutageError](err); ok && out.Reason != "" {
		reason = string(out.Reason)
	}
	o.add(ctx, o.outages, "weir: store unavailable", attribute.String("weir.reason", reason))
}

// add counts a problem, and records it as an event.
func (o *Observer) add(ctx context.Context, c metric.Int64Counter, event string, a attribute.KeyValue) {
	c.Add(ctx, 1, metric.WithAttributes(a))
	trace.SpanFromContext(ctx).AddEvent(event, trace.WithAttributes(a))
}
