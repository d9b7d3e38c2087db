package server

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/access"
	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/envoyfile"
	"github.com/weirhq/weir/internal/envoyrls"
	"github.com/weirhq/weir/internal/metrics"
	"github.com/weirhq/weir/internal/namespace"
	"github.com/weirhq/weir/window"
)

// envoyFront answers Envoy's calls.
type envoyFront struct {
	*envoyrls.API
	files bool // by the files of envoyproxy/ratelimit
}

// newEnvoy returns what answers Envoy's calls, by weir's rules or by the files of
// envoyproxy/ratelimit.
func newEnvoy(cfg config.Config, spaces *namespace.Set, rules *envoyRules, numbers *metrics.Metrics) *envoyFront {
	e := &cfg.Envoy
	c := envoyrls.Config{Headers: headers.Format{Dialect: headers.None}}
	if e.Headers {
		c.Headers = cfg.HeadersFormat()
	}
	if e.Dir != "" {
		r := &envoyrls.Reference{Files: rules.now.Load, Now: func() window.Instant { return window.At(time.Now()) }, Shadow: e.Shadow, Quota: e.Quota, Together: e.Together, Metadata: e.Metadata}
		if e.Headers {
			r.Headers = [3]string{e.Limit, e.Remaining, e.Reset}
		}
		if e.Metrics {
			counted := numbers.Envoy(e.NearLimit)
			r.Observe = func(o envoyrls.Observed) {
				counted.Count(&metrics.Hit{
					Keys: o.Limit.MetricKeys(o.Values), Hits: o.Hits, Quota: int64(o.Limit.Requests), Used: o.Used, Shadow: o.Over && o.Limit.Shadow,
				})
			}
		}
		c.Reference = r
	}
	return &envoyFront{envoyrls.New(spaces, c), e.Dir != ""}
}

// beside returns api with the calls that envoyproxy/ratelimit answers over HTTP, if
// it is replaced: POST /json, and GET /healthcheck.
func (e *envoyFront) beside(api http.Handler, lock *access.Lock, ready *readiness) http.Handler {
	if !e.files {
		return api
	}
	calls := e.HTTP(lock)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			calls.ServeHTTP(w, r)
		case "/healthcheck":
			ready.healthcheck(w)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// healthcheck answers as envoyproxy/ratelimit does.
func (r *readiness) healthcheck(w http.ResponseWriter) {
	if !r.is() {
		http.Error(w, "not ready", http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte("OK"))
}

// envoyRules is the rule files of envoyproxy/ratelimit.
type envoyRules struct {
	options envoyfile.Options
	now     atomic.Pointer[envoyfile.Config] // those in force
}

// readEnvoy reads a directory of envoyproxy/ratelimit's, or only the hash of its
// files.
func (r rulesAt) readEnvoy(parse bool) (l loaded, err error) {
	sources, err := envoyfile.Read(r.path)
	if err != nil {
		return loaded{hash: err.Error()}, err
	}
	sum := newSum(nil)
	for _, s := range sources {
		_, _ = sum.read(func(string) ([]byte, error) { return s.Text, nil }, s.Name)
		_, _ = io.WriteString(sum.hash, s.Name)
		l.lists = append(l.lists, s.Name)
	}
	l.hash = sum.text()
	if !parse {
		return l, nil
	}
	if l.envoy, err = envoyfile.New(sources, r.envoy.options); err == nil {
		l.set, l.warnings = l.envoy.Set, l.envoy.Warnings
	}
	return l, err
}
