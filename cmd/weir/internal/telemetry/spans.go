package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// The attributes of spans. These names are stable.
const (
	attrNamespace = attribute.Key("weir.namespace")
	attrVerb      = attribute.Key("weir.verb")
	attrAllowed   = attribute.Key("weir.allowed")
	attrOutcome   = attribute.Key("weir.outcome")
	attrRule      = attribute.Key("weir.rule")     // that set the outcome
	attrKey       = attribute.Key("weir.key")      // of this rule, if keys are shown
	attrDegraded  = attribute.Key("weir.degraded") // the reason of the outage
	attrUnmatched = attribute.Key("weir.unmatched")
)

// Decided sends the span of a decision in a namespace, which ended now and took some
// time.
func (t *Telemetry) Decided(ctx context.Context, namespace string, verb store.Verb, d *weir.Decision, took time.Duration) {
	span := t.begin(ctx, verb, took)
	defer span.End()
	if !span.IsRecording() {
		return
	}
	all := append(make([]attribute.KeyValue, 0, 8),
		attrNamespace.String(namespace), attrVerb.String(verb.String()),
		attrAllowed.Bool(d.Allowed), attrOutcome.String(d.Outcome))
	if d.Rule != "" {
		all = append(all, attrRule.String(d.Rule))
		if u := top.UsageOf(d, d.Rule); u != nil {
			if text, shown := t.keys.Of(u.Key); shown {
				all = append(all, attrKey.String(text))
			}
		}
	}
	if d.Degraded {
		all = append(all, attrDegraded.String(string(d.DegradedReason)))
	}
	if d.Unmatched {
		all = append(all, attrUnmatched.Bool(true))
	}
	span.SetAttributes(all...)
}

// Failed sends the span of a request that was not decided, with the kind of the error. It leaves
// out the text of the error, which can contain keys.
func (t *Telemetry) Failed(ctx context.Context, namespace string, verb store.Verb, err error) {
	span := t.begin(ctx, verb, 0)
	defer span.End()
	span.SetAttributes(attrNamespace.String(namespace), attrVerb.String(verb.String()))
	span.SetStatus(codes.Error, kindOf(err))
}

// begin returns the span of a call that took some time.
func (t *Telemetry) begin(ctx context.Context, verb store.Verb, took time.Duration) trace.Span {
	_, span := t.tracer.Start(ctx, "weir "+verb.String(),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(time.Now().Add(-took)))
	return span
}

// kindOf returns the kind of an error.
func kindOf(err error) string {
	var input *fault.Fault
	switch {
	case errors.As(err, &input):
		return "invalid request"
	case errors.Is(err, run.ErrLarge):
		return "answer too large"
	case errors.Is(err, store.ErrClosed):
		return "closed"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given up"
	}
	return "refused"
}
