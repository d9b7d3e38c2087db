package server

import (
	"io"
	"net/http"
	"net/http/pprof"
	"strconv"
	"sync/atomic"

	"github.com/weirhq/weir/internal/answer"
	"github.com/weirhq/weir/internal/metrics"
)

// readiness decides whether the service accepts new requests.
type readiness struct {
	store    *counts
	needed   bool // the service is not ready while the store is out of reach
	draining atomic.Bool
}

// drain marks the service as not ready.
func (r *readiness) drain() { r.draining.Store(true) }

// healthz answers that the process is running.
func healthz(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// readyz answers whether the service accepts new requests.
func (r *readiness) readyz(w http.ResponseWriter, _ *http.Request) {
	if r.draining.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "draining\n")
		return
	}
	away := r.store.away()
	if away != "" && r.needed {
		w.WriteHeader(http.StatusServiceUnavailable)
	} else {
		_, _ = io.WriteString(w, "ready\n")
	}
	_, _ = io.WriteString(w, away)
}

// withHealth adds /healthz and /readyz to the API.
func withHealth(api http.Handler, r *readiness) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/healthz":
			healthz(w, req)
		case "/readyz":
			r.readyz(w, req)
		default:
			api.ServeHTTP(w, req)
		}
	})
}

// adminHandler returns the handler for operators: health, metrics, reload and
// profiles.
func adminHandler(rules *reloader, numbers *metrics.Metrics, r *readiness) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", healthz)
	mux.HandleFunc("/readyz", r.readyz)
	mux.Handle("GET /metrics", numbers.Handler())
	mux.HandleFunc("POST /-/reload", func(w http.ResponseWriter, _ *http.Request) {
		if err := rules.reload("http"); err != nil {
			refusal(err).Write(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		n := rules.engine.Rules().Len()
		_, _ = io.WriteString(w, `{"rules":`+strconv.Itoa(n)+`,"hash":"`+rules.source().Hash+"\"}\n")
	})
	mux.HandleFunc("/-/reload", func(w http.ResponseWriter, req *http.Request) {
		(&answer.Problem{
			Status: http.StatusMethodNotAllowed,
			Detail: "/-/reload does not accept " + req.Method + "; use POST",
			Allow:  http.MethodPost,
		}).Write(w)
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		(&answer.Problem{Status: http.StatusNotFound, Detail: "no such path: " + req.URL.Path}).Write(w)
	})
	return mux
}
