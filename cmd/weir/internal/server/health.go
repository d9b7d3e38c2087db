package server

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// readiness decides whether the service accepts new requests.
type readiness struct {
	store    *counts
	rules    *spaces
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
	if r.store.refuses() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "loading counters from the data directory\n")
		return
	}
	away := r.store.away()
	if away != "" && r.needed {
		w.WriteHeader(http.StatusServiceUnavailable)
	} else {
		_, _ = io.WriteString(w, "ready\n")
	}
	_, _ = io.WriteString(w, away)
	if _, without := r.rules.rules(); without > 0 {
		fmt.Fprintf(w, "namespaces without rules, because their files have faults: %d\n", without)
	}
}

// is reports whether readyz answers that the service is ready.
func (r *readiness) is() bool {
	return !r.draining.Load() && (!r.needed || r.store.away() == "")
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
