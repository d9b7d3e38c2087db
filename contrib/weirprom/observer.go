// Package weirprom counts what engines, limiters and counters decide, for Prometheus:
//
//	observer := weirprom.New()
//	prometheus.MustRegister(observer)
//	posts := weir.MustLimiter(weir.Sliding(5, time.Minute), weir.WithName("posts"), weir.WithObserver(observer))
//
// The names and labels are those of the service, without its label namespace. Only weir_outages_total has another name
// there, weir_store_outages_total, and no label node here.
package weirprom

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
)

// Observer is a [weir.Observer] and a [prometheus.Collector]. Make one with [New], register
// it, and give it to all engines and limiters of a program. It is safe for concurrent use. Keys are never
// labels, because there are as many keys as users.
//
//	weir_decisions_total{rule,outcome,verb}  decisions; rule is the one that set the outcome, or empty
//	weir_decisions_degraded_total            decisions that an outage policy made
//	weir_decision_duration_seconds           time of a decision
//	weir_requests_failed_total{verb}         requests that got an error, such as bad input
//	weir_outages_total{reason}               calls that a store could not answer
type Observer struct {
	decisions, failed, outages *prometheus.CounterVec
	degraded                   prometheus.Counter
	duration                   prometheus.Histogram
}

var (
	_ weir.Observer        = (*Observer)(nil)
	_ prometheus.Collector = (*Observer)(nil)
)

// New returns an observer that has counted nothing.
func New() *Observer {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &Observer{
		decisions: vec("weir_decisions_total", "Decisions, by verb, outcome and the rule that gave the outcome (empty when none did).", "rule", "outcome", "verb"),
		failed:    vec("weir_requests_failed_total", "Requests that were answered with an error, such as bad input.", "verb"),
		outages:   vec("weir_outages_total", "Calls that a store could not answer, by reason.", "reason"),
		degraded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_decisions_degraded_total", Help: "Decisions made without the store, by an outage policy.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_decision_duration_seconds", Help: "Time of a decision.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 11), // 1 µs to 1 s
		}),
	}
}

// Decided implements [weir.Observer].
func (o *Observer) Decided(_ context.Context, verb store.Verb, d *weir.Decision, took time.Duration) {
	o.duration.Observe(took.Seconds())
	o.decisions.WithLabelValues(d.Rule, d.Outcome, verb.String()).Inc()
	if d.Degraded {
		o.degraded.Inc()
	}
}

// Failed implements [weir.Observer].
func (o *Observer) Failed(_ context.Context, verb store.Verb, _ error) {
	o.failed.WithLabelValues(verb.String()).Inc()
}

// Outage implements [weir.Observer].
func (o *Observer) Outage(_ context.Context, _ store.Verb, err error) {
	reason := "unknown"
	if out, ok := errors.AsType[*store.OutageError](err); ok && out.Reason != "" {
		reason = string(out.Reason)
	}
	o.outages.WithLabelValues(reason).Inc()
}

func (o *Observer) collectors() []prometheus.Collector {
	return []prometheus.Collector{o.decisions, o.failed, o.outages, o.degraded, o.duration}
}

// Describe implements [prometheus.Collector].
func (o *Observer) Describe(to chan<- *prometheus.Desc) {
	for _, c := range o.collectors() {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (o *Observer) Collect(to chan<- prometheus.Metric) {
	for _, c := range o.collectors() {
		c.Collect(to)
	}
}
