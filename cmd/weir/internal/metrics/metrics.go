// Package metrics exports metrics to Prometheus: those of the decisions of each
// namespace, and what the server reports about its rules and its store. A key is
// never a label, because there are as many keys as users.
package metrics

import (
	"bytes"
	"cmp"
	"net/http"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics has the metrics of one service, in a separate registry. Make one with
// [New]. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	near     float64 // share of a quota
	bound    int     // the maximum number of namespaces with their own label

	decisions, matched, over, nearLimit, triggered *prometheus.CounterVec
	holds, debts, bans                             *prometheus.CounterVec
	unmatched, failed, degraded                    *prometheus.CounterVec
	duration                                       prometheus.Observer

	reloads           *prometheus.CounterVec
	reloaded, success *prometheus.GaugeVec
	rules             *prometheus.GaugeVec
	labelled          []labelled // those above with the label namespace
	sent              *prometheus.CounterVec

	refused, shed *prometheus.CounterVec // by listeners
	accessLoaded  *prometheus.GaugeVec

	envoyLoads, envoyFaults prometheus.Counter // of the rules, as envoyproxy/ratelimit names them; see [Metrics.Envoy]

	mu     sync.Mutex
	served map[string]*Namespace // guarded by mu
	labels int                   // guarded by mu; those in served with their own label
}

// Config configures [Metrics]. The zero value has the defaults.
type Config struct {
	// Version is the version of the service, and Commit its commit, or empty if
	// it is not known.
	Version, Commit string

	// NearLimit is the share of a quota from which on a key is near its limit.
	// 0 means 0.8.
	NearLimit float64

	// Namespaces is the maximum number of namespaces with their own label. Others are
	// counted together. 0 means 100.
	Namespaces int
}

// New returns the metrics of a service.
func New(c Config) *Metrics {
	r := prometheus.NewRegistry()
	var all []labelled
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := counters(r, name, help, append([]string{"namespace"}, labels...)...)
		all = append(all, c)
		return c
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := gauges(r, name, help, "namespace")
		all = append(all, g)
		return g
	}
	m := &Metrics{
		registry: r, near: cmp.Or(c.NearLimit, 0.8), bound: cmp.Or(c.Namespaces, 100), served: map[string]*Namespace{},
		decisions: vec("weir_decisions_total",
			"Decisions, by verb, outcome and the rule that gave the outcome (empty when none did).",
			"rule", "outcome", "verb"),
		matched: vec("weir_rule_matched_total",
			"Takes and records that a rule counted or would have counted.", "rule"),
		over: vec("weir_rule_over_total",
			"Takes that exceeded a rule; with mode shadow, takes that it would have denied.", "rule", "mode"),
		nearLimit: vec("weir_rule_near_limit_total",
			"Takes and records within a rule's limit after which the key had used --near-limit of its quota or more.", "rule", "mode"),
		triggered: vec("weir_rule_triggered_total",
			"Takes and records for which a trigger reported.", "rule"),
		holds: vec("weir_holds_total",
			"Holds by event: held, settled, cancelled, renewed, or late for calls whose receipt found no hold.", "rule", "event"),
		debts: vec("weir_debts_total",
			"Settles after which the key had used more than its quota.", "rule"),
		bans: vec("weir_bans_total",
			"Bans that began because a key with hits in its window went over the limit.", "rule"),
		unmatched: vec("weir_requests_unmatched_total",
			"Requests that no rule matched, by verb.", "verb"),
		failed: vec("weir_requests_failed_total",
			"Requests that the engine answered with an error, such as bad input.", "verb"),
		degraded: vec("weir_decisions_degraded_total",
			"Decisions made without the store, by the rules' on_outage."),
		reloads: vec("weir_rules_reload_total",
			"Attempts to load the rules, by result.", "result"),
		success:  gauge("weir_rules_reload_success", "Whether the last attempt to load the rules succeeded."),
		reloaded: gauge("weir_rules_reload_timestamp_seconds", "Time of the last successful load of the rules, in Unix time."),
		rules:    gauge("weir_rules", "Number of rules in force."),
		sent: counters(r, "weir_telemetry_sent_total",
			"Attempts to send telemetry to a collector, by signal and result.", "signal", "result"),
		refused: counters(r, "weir_access_refused_total",
			"Calls that authentication refused, by listener and reason.", "listener", "reason"),
		shed: counters(r, "weir_shed_total",
			"Requests and connections that were refused because of a resource limit, by listener and limit.", "listener", "limit"),
		accessLoaded: gauges(r, "weir_access_reload_success",
			"Whether the last attempt to load the tokens or the certificate succeeded.", "what"),
		envoyLoads:  prometheus.NewCounter(prometheus.CounterOpts{Name: "ratelimit_service_config_load_success", Help: "Successful loads of the files."}),
		envoyFaults: prometheus.NewCounter(prometheus.CounterOpts{Name: "ratelimit_service_config_load_error", Help: "Failed loads of the files."}),
	}
	m.labelled = all
	duration := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "weir_decision_duration_seconds",
		Help:    "Time the engine took for a decision.",
		Buckets: prometheus.ExponentialBuckets(1e-6, 4, 11), // 1 µs to 1 s
	})
	m.duration = duration
	build := gauges(r, "weir_build_info", "1, labelled with the version, the commit and Go's version.", "version", "commit", "goversion")
	build.WithLabelValues(c.Version, c.Commit, runtime.Version()).Set(1)
	r.MustRegister(duration,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// labelled is a metric with the label namespace.
type labelled interface{ DeletePartialMatch(prometheus.Labels) int }

// counters registers a counter with labels.
func counters(r prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(c)
	return c
}

// gauges registers a gauge with labels.
func gauges(r prometheus.Registerer, name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.MustRegister(g)
	return g
}

// Gatherer returns the gatherer of the metrics.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Sent counts an attempt to send traces or metrics to a collector.
func (m *Metrics) Sent(signal string, ok bool) {
	result := "failure"
	if ok {
		result = "success"
	}
	m.sent.WithLabelValues(signal, result).Inc()
}

// Handler returns the handler that serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return oneAtATime(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
}

// oneAtATime returns a handler that makes one answer of h at a time, because that takes several times the memory of the
// text. Only the text waits for a client that reads slowly.
func oneAtATime(h http.Handler) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := written{header: w.Header(), status: http.StatusOK}
		func() {
			mu.Lock()
			defer mu.Unlock()
			h.ServeHTTP(&a, r)
		}()
		w.WriteHeader(a.status)
		_, _ = w.Write(a.Bytes()) // an error means that the caller is gone
	})
}

// written is an [http.ResponseWriter] that keeps the answer.
type written struct {
	bytes.Buffer
	header http.Header
	status int
}

func (a *written) Header() http.Header    { return a.header }
func (a *written) WriteHeader(status int) { a.status = status }
