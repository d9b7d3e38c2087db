// Package metrics exports metrics to Prometheus: a [weir.Observer] for
// decisions, and what the server reports about its rules and its store. A key
// is never a label, because there are as many keys as users.
package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
)

// Metrics holds the metrics of one service, in a registry of their own. Make
// one with [New]. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	decisions *cache[decision]
	duration  prometheus.Observer
	matched   *cache[string] // by rule
	over      *cache[ruleMode]
	triggered *cache[string] // by rule
	holds     *cache[holdEvent]
	debts     *cache[string] // by rule
	bans      *cache[string] // by rule
	unmatched *prometheus.CounterVec
	degraded  prometheus.Counter
	failed    *prometheus.CounterVec

	reloads  *prometheus.CounterVec
	reloaded prometheus.Gauge
	success  prometheus.Gauge
	rules    prometheus.Gauge

	access access
}

var _ weir.Observer = (*Metrics)(nil)

// New returns the metrics of a service of a version.
func New(version string) *Metrics {
	r := prometheus.NewRegistry()
	decisions := counters(r, "weir_decisions_total",
		"Decisions, by verb, outcome and the rule that gave the outcome (empty when none did).",
		"rule", "outcome", "verb")
	matched := counters(r, "weir_rule_matched_total",
		"Takes and records that a rule counted or would have counted.", "rule")
	over := counters(r, "weir_rule_over_total",
		"Takes that exceeded a rule; with mode shadow, takes that it would have denied.", "rule", "mode")
	triggered := counters(r, "weir_rule_triggered_total",
		"Takes and records for which a trigger reported.", "rule")
	holds := counters(r, "weir_holds_total",
		"Holds by what became of them: held, settled, cancelled, renewed, or late, which a receipt did not find.", "rule", "event")
	debts := counters(r, "weir_debts_total",
		"Settles after which the key had used more than its quota.", "rule")
	bans := counters(r, "weir_bans_total",
		"Bans that began because a key with hits in its window went over the limit.", "rule")
	byRule := func(v *prometheus.CounterVec) func(string) prometheus.Counter {
		return func(rule string) prometheus.Counter { return v.WithLabelValues(rule) }
	}
	m := &Metrics{
		registry: r,
		access:   newAccess(r),
		decisions: newCache(func(d decision) prometheus.Counter {
			return decisions.WithLabelValues(d.rule, d.outcome, d.verb)
		}),
		matched:   newCache(byRule(matched)),
		over:      newCache(func(o ruleMode) prometheus.Counter { return over.WithLabelValues(o.rule, o.mode) }),
		triggered: newCache(byRule(triggered)),
		holds:     newCache(func(h holdEvent) prometheus.Counter { return holds.WithLabelValues(h.rule, h.event) }),
		debts:     newCache(byRule(debts)),
		bans:      newCache(byRule(bans)),
		unmatched: counters(r, "weir_requests_unmatched_total",
			"Requests that no rule matched, by verb.", "verb"),
		failed: counters(r, "weir_requests_failed_total",
			"Requests that the engine answered with an error, such as bad input.", "verb"),
		reloads: counters(r, "weir_rules_reload_total",
			"Attempts to load the rules, by result.", "result"),
		degraded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_decisions_degraded_total",
			Help: "Decisions made without the store, by the rules' on_outage.",
		}),
		success:  gauge(r, "weir_rules_reload_success", "Whether the last attempt to load the rules succeeded."),
		reloaded: gauge(r, "weir_rules_reload_timestamp_seconds", "Time of the last successful load of the rules, in Unix time."),
		rules:    gauge(r, "weir_rules", "Number of rules in force."),
	}
	duration := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "weir_decision_duration_seconds",
		Help:    "Time the engine took for a decision.",
		Buckets: prometheus.ExponentialBuckets(1e-6, 4, 11), // 1 µs to 1 s
	})
	m.duration = duration
	for _, result := range []string{"success", "failure"} {
		m.reloads.WithLabelValues(result) // so that both exist from the start
	}
	build := gauge(prometheus.WrapRegistererWith(prometheus.Labels{
		"version": version, "goversion": runtime.Version(),
	}, r), "weir_build_info", "1, labelled with the version.")
	build.Set(1)
	r.MustRegister(duration, m.degraded,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// counters registers a counter with labels.
func counters(r prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(c)
	return c
}

// gauge registers a gauge.
func gauge(r prometheus.Registerer, name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.MustRegister(g)
	return g
}

// Handler returns the handler that serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Decided counts one decision. It does not keep d.
func (m *Metrics) Decided(verb store.Verb, d *weir.Decision, took time.Duration) {
	m.duration.Observe(took.Seconds())
	m.decisions.get(decision{d.Rule, d.Outcome, verb.String()}).Inc()
	if d.Degraded {
		m.degraded.Inc()
	}
	if d.Unmatched {
		m.unmatched.WithLabelValues(verb.String()).Inc()
	}
	if verb.Ends() {
		m.ended(verb, d)
		return
	}
	if verb != store.Take && verb != store.Record {
		return
	}
	for i := range d.Usages {
		u := &d.Usages[i]
		m.matched.get(u.Rule).Inc()
		if u.Held || u.Banned {
			m.began(u)
		}
		if !u.Allowed {
			m.over.get(ruleMode{u.Rule, mode(u)}).Inc()
		}
	}
	for _, rule := range d.Triggered {
		m.triggered.get(rule).Inc()
	}
}

// Failed counts one request that was answered with an error.
func (m *Metrics) Failed(verb store.Verb, _ error) { m.failed.WithLabelValues(verb.String()).Inc() }

// Outage implements [weir.Observer]. Outages are counted by node ([Metrics.WatchNodes]),
// and the decisions that they degrade by Decided.
func (m *Metrics) Outage(store.Verb, error) {}

// mode returns the label for the mode of a rule.
func mode(u *weir.Usage) string {
	if u.Shadow {
		return "shadow"
	}
	return "enforce"
}

// Loaded records that rules came into force at a time.
func (m *Metrics) Loaded(rules int, at time.Time) {
	m.reloads.WithLabelValues("success").Inc()
	m.success.Set(1)
	m.reloaded.Set(float64(at.UnixMilli()) / 1000)
	m.rules.Set(float64(rules))
}

// Refused records that rules could not be loaded, so that the old ones stay in
// force.
func (m *Metrics) Refused() {
	m.reloads.WithLabelValues("failure").Inc()
	m.success.Set(0)
}
