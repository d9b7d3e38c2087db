package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/metrics"
)

// stats returns what e serves.
func stats(e *metrics.Envoy) string {
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/stats", nil))
	return w.Body.String()
}

// Callers choose the values in the keys of limits with detailed_metric, so that their series are limited.
func TestEnvoyValuesAreLimited(t *testing.T) {
	t.Parallel()
	const most, more = 10_000, 50
	e := metrics.New(metrics.Config{}).Envoy(metrics.EnvoyConfig{Shown: true})
	plain := []string{"edge", "user"}
	tooLong := "user_" + strings.Repeat("x", 252)
	e.ValuedLimit([]string{"edge", tooLong}, plain).Count(&metrics.Hit{Hits: 3, Quota: 100, Used: 1})
	for range 2 { // those with their own series keep them
		for i := range most + more {
			e.ValuedLimit([]string{"edge", "user_" + strconv.Itoa(i)}, plain).Count(&metrics.Hit{Hits: 1, Quota: 100, Used: 1})
		}
	}
	text := stats(e)
	if got := strings.Count(text, ".total_hits: "); got != most+1 {
		t.Errorf("got %d series, want %d", got, most+1)
	}
	for _, want := range []string{"user_0.total_hits: 2\n", "user_9999.total_hits: 2\n", "edge.user.total_hits: 103\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no line with %q", want)
		}
	}
}

// A value with a line end makes no line of its own.
func TestEnvoyStatsAreLines(t *testing.T) {
	t.Parallel()
	e := metrics.New(metrics.Config{}).Envoy(metrics.EnvoyConfig{Shown: true})
	e.ValuedLimit([]string{"edge", "user_a\nuser_b.total_hits: 99"}, []string{"edge", "user"}).Count(&metrics.Hit{Hits: 1, Quota: 100})
	if got, want := stats(e), "ratelimit.service.rate_limit.edge.user_a?user_b.total_hits: 99.total_hits: 1\n"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}
