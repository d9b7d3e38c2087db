package server

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/window"
)

// envoyFront answers Envoy's calls.
type envoyFront struct {
	*envoyrls.API
	rules   *envoyRules    // of envoyproxy/ratelimit; nil: weir's own
	numbers *metrics.Envoy // what that service counts; nil with weir's own rules

	// keys is how metrics show the values of entries, of limits with detailed_metric or
	// value_to_metric. Nil: as they are.
	keys *top.KeyText
}

// newEnvoy returns the front end for Envoy's calls, by weir's rules or by the files of
// envoyproxy/ratelimit.
func newEnvoy(cfg config.Config, namespaces *namespace.Set, rules *envoyRules, numbers *metrics.Metrics, keys top.KeyText) *envoyFront {
	e := &cfg.Envoy
	c := envoyrls.Config{Headers: headers.Format{Dialect: headers.None}}
	front := &envoyFront{}
	if top.KeyForm(cfg.LogKeys).Hides() {
		front.keys = &keys
	}
	if e.Headers {
		c.Headers = cfg.HeadersFormat()
	}
	if e.Replaces() {
		r := &envoyrls.Reference{Files: rules.now.Load, Now: func() window.Instant { return window.At(time.Now()) }, Shadow: e.Shadow, Quota: e.Quota, Together: e.Together, Metadata: e.Metadata}
		if e.Headers {
			r.Headers = [3]string{e.Limit, e.Remaining, e.Reset}
		}
		if e.RequestHeaders {
			r.RequestHeaders = [3]string{e.RequestLimit, e.RequestRemaining, e.RequestReset}
		}
		front.rules, front.numbers = rules, numbers.Envoy(metrics.EnvoyConfig{NearLimit: e.NearLimit, NoDots: e.NoDots, Shown: e.Metrics})
		r.Observe = front.observe
		r.Answered = func(c envoyrls.Answered) {
			front.numbers.Called(&metrics.EnvoyCall{GRPC: c.GRPC, Took: c.Took, Degraded: c.Degraded, Shadowed: c.Shadowed, Failed: c.Err != nil})
		}
		c.Reference = r
	}
	front.API = envoyrls.New(namespaces, c)
	return front
}

// observe counts what became of a descriptor. It finds the counters of a limit once, as
// long as the files stay.
func (e *envoyFront) observe(o envoyrls.Observed) {
	now := e.rules.now.Load()
	known := e.rules.counters.Load()
	if known == nil || known.of != now {
		known = &envoyCounters{of: now}
		e.rules.counters.Store(known)
	}
	var limit *metrics.EnvoyLimit
	if at, ok := known.limits.Load(o.Limit); ok {
		limit = at.(*metrics.EnvoyLimit)
	} else if plain := o.Limit.MetricKeys(nil); o.Limit.HasValues() {
		limit = e.numbers.ValuedLimit(o.Limit.MetricKeys(e.shown(o.Values)), plain)
	} else {
		limit = e.numbers.Limit(plain)
		known.limits.Store(o.Limit, limit)
	}
	limit.Count(&metrics.Hit{Hits: o.Hits, Quota: o.Quota, Used: o.Used, Shadow: o.Over && o.Shadow})
}

// shown returns values as metrics show them, or nil if metrics show none.
func (e *envoyFront) shown(values []string) []string {
	if e.keys == nil {
		return values
	}
	texts := make([]string, len(values))
	for i, value := range values {
		if value == "" {
			continue
		}
		text, shown := e.keys.Of(value)
		if !shown {
			return nil
		}
		texts[i] = text
	}
	return texts
}

// adminRoutes returns the calls that envoyproxy/ratelimit answers on its debug port, and
// that the admin address has if that service is replaced.
func (e *envoyFront) adminRoutes() map[string]adminRoute {
	if e.rules == nil {
		return nil
	}
	return map[string]adminRoute{
		"/rlconfig": {http.MethodGet, access.Read, func(w http.ResponseWriter, _ *http.Request) {
			files := e.rules.now.Load()
			if files == nil {
				answer.ProblemOf(namespace.ErrNoRules).Write(w)
				return
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, _ = io.WriteString(w, files.Dump()) // an error means that the caller is gone
		}},
		"/stats": {http.MethodGet, access.Read, e.numbers.Handler().ServeHTTP},
	}
}

// addRoutes adds the calls that envoyproxy/ratelimit answers over HTTP, if it is replaced:
// POST /json, and GET /healthcheck.
func (e *envoyFront) addRoutes(to map[string]http.HandlerFunc, auth *access.Authenticator, resources *access.ResourceLimits, ready *readiness) {
	if e.rules != nil {
		to["/json"] = e.HTTP(auth, resources).ServeHTTP
		to["/healthcheck"] = ready.healthcheck
	}
}

// healthcheck answers as envoyproxy/ratelimit does.
func (r *readiness) healthcheck(w http.ResponseWriter, _ *http.Request) {
	if !r.is() {
		http.Error(w, "not ready", http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte("OK"))
}

// envoyRules is the rules of envoyproxy/ratelimit: files of a directory, or what an xDS server
// sent.
type envoyRules struct {
	options envoyfile.Options
	now     atomic.Pointer[envoyfile.Config] // those in force; nil until an xDS server has sent the first ones

	sent     []envoyfile.Source // by an xDS server; guarded by namespaces.mu
	received bool               // guarded by namespaces.mu

	counters atomic.Pointer[envoyCounters] // of the last call
}

// envoyCounters has the counters of limits whose metrics do not name values.
type envoyCounters struct {
	of     *envoyfile.Config
	limits sync.Map // *envoyfile.Limit → *metrics.EnvoyLimit
}

// errNothingSent is the error of rules that no xDS server has sent yet.
var errNothingSent = errors.New("the xDS server has not sent any limits yet")

// sources returns the text of the rules.
func (r rulesAt) sources() ([]envoyfile.Source, error) {
	switch {
	case !r.pushed():
		return envoyfile.Read(r.path)
	case !r.envoy.received:
		return nil, errNothingSent
	}
	return r.envoy.sent, nil
}

// readEnvoy reads rules of envoyproxy/ratelimit's, or only their hash.
func (r rulesAt) readEnvoy(parse bool) (l loaded, err error) {
	sources, err := r.sources()
	if err != nil {
		return loaded{hash: err.Error()}, err
	}
	sum := files.NewSum(nil)
	for _, s := range sources {
		sum.Add(s.Text, nil)
		sum.Name(s.Name)
		l.lists = append(l.lists, s.Name)
	}
	l.hash = sum.Text()
	if !parse {
		return l, nil
	}
	if l.envoy, err = envoyfile.New(sources, r.envoy.options); err == nil {
		l.set, l.warnings = l.envoy.Set, l.envoy.Warnings
	}
	return l, err
}
