package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/weirhq/weir/cmd/weir/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The endpoint and the standard variables say what is sent, and where. Without them
// nothing is.
func TestEnvironment(t *testing.T) {
	var mu sync.Mutex
	var got []string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.URL.Path+" "+r.Header.Get("X-Secret"))
	}))
	defer collector.Close()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, tc := range []struct {
		name, endpoint string
		env            map[string]string
		traces         bool
		want           string // paths of the collector, at the end
		err            string
	}{
		{name: "nothing"},
		{name: "flag", endpoint: collector.URL, traces: true, want: "/v1/metrics "},
		{name: "flag with a path", endpoint: collector.URL + "/otlp/", traces: true, want: "/otlp/v1/metrics "},
		{name: "variable", env: map[string]string{endpoint: collector.URL, "OTEL_EXPORTER_OTLP_HEADERS": "x-secret=s"}, traces: true, want: "/v1/metrics s"},
		{name: "one of its own", env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": collector.URL + "/m"}, want: "/m "},
		{name: "no metrics", endpoint: collector.URL, env: map[string]string{"OTEL_METRICS_EXPORTER": "none"}, traces: true},
		{name: "metrics at /metrics", endpoint: collector.URL, env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, traces: true},
		{name: "no traces", endpoint: collector.URL, env: map[string]string{"OTEL_TRACES_EXPORTER": "none"}, want: "/v1/metrics "},
		{name: "disabled", endpoint: collector.URL, env: map[string]string{"OTEL_SDK_DISABLED": "TRUE"}},
		{name: "gRPC", endpoint: collector.URL, env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, err: `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc": weir speaks http/protobuf only`},
		{name: "console", endpoint: collector.URL, env: map[string]string{"OTEL_TRACES_EXPORTER": "console"}, err: `OTEL_TRACES_EXPORTER: "console": want otlp or none`},
		{name: "headers without =", endpoint: collector.URL, env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x=y,swordfish"}, err: "OTEL_EXPORTER_OTLP_HEADERS: want NAME=VALUE, or several"},
		{name: "headers with an escape", endpoint: collector.URL, env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_HEADERS": "x=%zz"}, err: "OTEL_EXPORTER_OTLP_METRICS_HEADERS: want NAME=VALUE, or several"},
		{name: "variable that is no URL", env: map[string]string{endpoint: "http://weir:swordfish%zz@host"}, err: "OTEL_EXPORTER_OTLP_ENDPOINT: want a URL such as http://localhost:4318"},
		{name: "prometheus traces", endpoint: collector.URL, env: map[string]string{"OTEL_TRACES_EXPORTER": "prometheus"}, err: `want otlp or none`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, value := range tc.env {
				t.Setenv(name, value)
			}
			numbers := prometheus.NewRegistry()
			numbers.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "some_total"}))
			tele, err := telemetry.Start(t.Context(), telemetry.Config{Endpoint: tc.endpoint, Metrics: numbers})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (tele != nil) != (tc.traces || tc.want != "") || tele.Traces() != tc.traces {
				t.Errorf("got %v, traces %v, want traces %v", tele, tele.Traces(), tc.traces)
			}
			if err := tele.Close(context.Background()); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if all := strings.Join(got, "\n"); all != tc.want {
				t.Errorf("got calls %q, want %q", all, tc.want)
			}
			got = nil
		})
	}
}

// A collector cannot make weir call other addresses.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var other atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	defer target.Close()
	collector := httptest.NewServer(http.RedirectHandler(target.URL+"/-/rotate-secret", http.StatusTemporaryRedirect))
	defer collector.Close()
	numbers := prometheus.NewRegistry()
	numbers.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "some_total"}))
	failed := make(chan error, 1)
	tele, err := telemetry.Start(t.Context(), telemetry.Config{Endpoint: collector.URL, Metrics: numbers, Sent: func(_ telemetry.Signal, err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	_ = tele.Close(context.Background()) // it sends the metrics
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
		t.Errorf("got %v, want an error that says so", err)
	}
	if other.Load() > 0 {
		t.Error("the redirect was followed")
	}
}
