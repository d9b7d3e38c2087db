package metrics

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
)

// Envoy has the counters of envoyproxy/ratelimit. It is safe for concurrent use.
type Envoy struct {
	counters [len(envoyNames)]*prometheus.CounterVec
	own      *prometheus.Registry
	config   EnvoyConfig

	mu     sync.RWMutex
	valued map[envoyLabels]*EnvoyLimit // guarded by mu; of limits whose keys have values

	calls           prometheus.Counter
	duration        prometheus.Observer
	redis, mistakes prometheus.Counter
	shadowed        prometheus.Counter
}

// EnvoyConfig configures [Envoy].
type EnvoyConfig struct {
	// NearLimit is the share of a limit from which on a call is near it.
	NearLimit float64

	// NoDots replaces each dot in keys and values with _.
	NoDots bool

	// Shown exports the counters under the names of the Prometheus endpoint of that service.
	Shown bool
}

// EnvoyLimit has the counters of one limit.
type EnvoyLimit struct {
	counters [len(envoyNames)]prometheus.Counter
	ratio    float64
}

// The counters, as indexes of envoyNames.
const (
	envoyTotal = iota
	envoyWithin
	envoyNear
	envoyOver
	envoyShadow
)

// envoyNames has the names after envoyPrefix, and the help.
var envoyNames = [...]struct{ name, help string }{
	envoyTotal:  {"total_hits", "Hits under a limit of envoyproxy/ratelimit's files, by domain and keys."},
	envoyWithin: {"within_limit", "Hits within the limit."},
	envoyNear:   {"near_limit", "Hits near the limit (NEAR_LIMIT_RATIO)."},
	envoyOver:   {"over_limit", "Hits over the limit."},
	envoyShadow: {"shadow_mode", "Hits over a limit in shadow mode."},
}

// Hit has the result of one descriptor.
type Hit struct {
	Hits, Quota, Used int64
	Shadow            bool // a limit in shadow mode was exceeded
}

// maxKeys is how many keys of a limit are labels; deeper ones are joined in the last.
const maxKeys = 4

// envoyLabels are the domain, and the keys of a limit.
type envoyLabels [1 + maxKeys]string

// maxValued is how many combinations of values have their own counters. Callers choose the values.
const maxValued = 10_000

// maxLabel is the maximum size of a key with such a value, in bytes. Every scrape has it five times.
const maxLabel = 256

// envoyPrefix is the prefix of the names of these metrics.
const envoyPrefix = "ratelimit_service_rate_limit_"

// Envoy returns the counters of envoyproxy/ratelimit.
func (m *Metrics) Envoy(c EnvoyConfig) *Envoy {
	labels := []string{"domain"}
	for i := range maxKeys {
		labels = append(labels, "key"+strconv.Itoa(i+1))
	}
	e := &Envoy{config: c, own: prometheus.NewRegistry(), valued: map[envoyLabels]*EnvoyLimit{}}
	for i, of := range envoyNames {
		e.counters[i] = counters(e.own, envoyPrefix+of.name, of.help, labels...)
		if c.Shown {
			m.registry.MustRegister(e.counters[i])
		}
	}
	var r prometheus.Registerer = prometheus.NewRegistry()
	if c.Shown {
		r = m.registry
		r.MustRegister(m.envoyLoads, m.envoyFaults)
	}
	const method = "ShouldRateLimit"
	e.calls = counters(r, "ratelimit_service_total_requests", "Calls of Envoy over gRPC.", "grpc_method").WithLabelValues(method)
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ratelimit_service_response_time_seconds", Help: "Time that calls of Envoy over gRPC took.",
	}, []string{"grpc_method"})
	r.MustRegister(duration)
	e.duration = duration.WithLabelValues(method)
	failed := counters(r, "ratelimit_service_should_rate_limit_error",
		"Calls that were decided without the store (redis_error), and calls that were refused (service_error).", "err_type")
	e.redis, e.mistakes = failed.WithLabelValues("redis_error"), failed.WithLabelValues("service_error")
	e.shadowed = counters(r, "ratelimit_service_global_shadow_mode", "Calls over a limit that SHADOW_MODE allowed.").WithLabelValues()
	return e
}

// EnvoyCall has the result of one call.
type EnvoyCall struct {
	GRPC     bool // the call is not in JSON
	Took     time.Duration
	Degraded bool // decided without the store
	Shadowed bool // over a limit, and allowed by SHADOW_MODE
	Failed   bool // not decided
}

// Called counts c.
func (e *Envoy) Called(c *EnvoyCall) {
	if c.GRPC {
		e.calls.Inc()
		e.duration.Observe(c.Took.Seconds())
	}
	switch {
	case c.Failed:
		e.mistakes.Inc()
	case c.Degraded:
		e.redis.Inc()
	}
	if c.Shadowed {
		e.shadowed.Inc()
	}
}

// Limit returns the counters of a limit. keys are the domain, and the keys of the limit.
func (e *Envoy) Limit(keys []string) *EnvoyLimit { return e.limit(e.labels(keys)) }

// ValuedLimit returns the counters of a limit whose keys have values of entries. If a value is too long, or there are
// 10,000 others already, it returns those of plain, the keys without values.
func (e *Envoy) ValuedLimit(keys, plain []string) *EnvoyLimit {
	labels := e.labels(keys)
	if slices.ContainsFunc(labels[:], func(text string) bool { return len(text) > maxLabel }) {
		return e.Limit(plain)
	}
	e.mu.RLock()
	l, full := e.valued[labels], len(e.valued) >= maxValued
	e.mu.RUnlock()
	switch {
	case l != nil:
		return l
	case full:
		return e.Limit(plain)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if l = e.valued[labels]; l == nil && len(e.valued) < maxValued {
		for i := range labels {
			labels[i] = strings.Clone(labels[i]) // not the text of a call
		}
		l = e.limit(labels)
		e.valued[labels] = l
	}
	if l == nil {
		return e.Limit(plain)
	}
	return l
}

// labels returns the labels of a limit with keys.
func (e *Envoy) labels(keys []string) (values envoyLabels) {
	for i, key := range keys {
		if i > 0 && e.config.NoDots {
			key = strings.ReplaceAll(key, ".", "_")
		}
		if i < len(values) {
			values[i] = key
		} else {
			values[maxKeys] += "." + key
		}
	}
	return values
}

func (e *Envoy) limit(labels envoyLabels) *EnvoyLimit {
	l := &EnvoyLimit{ratio: e.config.NearLimit}
	for i, c := range e.counters {
		l.counters[i] = c.WithLabelValues(labels[:]...)
	}
	return l
}

// Count counts h: of its hits those that were over the limit, those that were near
// it, and those that were within it.
func (l *EnvoyLimit) Count(h *Hit) {
	exceeded := min(max(h.Used-h.Quota, 0), h.Hits)
	from := int64(l.ratio * float64(h.Quota))
	l.add(envoyTotal, h.Hits)
	l.add(envoyOver, exceeded)
	l.add(envoyNear, min(max(min(h.Used, h.Quota)-from, 0), h.Hits-exceeded))
	l.add(envoyWithin, h.Hits-exceeded)
	if h.Shadow {
		l.add(envoyShadow, exceeded)
	}
}

func (l *EnvoyLimit) add(what int, hits int64) {
	if hits > 0 {
		l.counters[what].Add(float64(hits))
	}
}

// Handler returns the handler that serves the counters in the form of that service's debug endpoint, a line
// each: ratelimit.service.rate_limit.DOMAIN.KEYS.total_hits: 3. Control characters of values are shown as ?.
func (e *Envoy) Handler() http.Handler {
	return oneAtATime(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lines, err := e.lines()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		for _, line := range lines {
			_, _ = io.WriteString(w, line) // into memory
		}
	}))
}

// lines returns the lines of [Envoy.Handler] in order.
func (e *Envoy) lines() ([]string, error) {
	families, err := e.own.Gather()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var path []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" {
					path = append(path, l.GetValue())
				}
			}
			lines = append(lines, "ratelimit.service.rate_limit."+strings.Map(shown, strings.Join(path, "."))+"."+strings.TrimPrefix(f.GetName(), envoyPrefix)+": "+
				strconv.FormatFloat(m.GetCounter().GetValue(), 'f', 0, 64)+"\n")
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// shown returns r, or ? instead of a control character.
func shown(r rune) rune {
	if unicode.IsControl(r) {
		return '?'
	}
	return r
}
