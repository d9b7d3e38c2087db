package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/store"
)

// BenchmarkObserved measures a take with the observer of a service: without a
// collector, with one and no span sampled, and with all of them sampled.
func BenchmarkObserved(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	rules := scripttest.Rules(b, posts(1_000_000_000))
	for _, tc := range []struct{ name, endpoint, sampler string }{
		{"off", "", ""}, {"unsampled", collector.URL, "always_off"}, {"sampled", collector.URL, "always_on"},
	} {
		b.Run(tc.name, func(b *testing.B) {
			b.Setenv("OTEL_TRACES_SAMPLER", tc.sampler)
			observer, end := server.NewObserver(tc.endpoint)
			defer end()
			e := scripttest.Engine(b, rules, weir.WithObserver(observer))
			r := weir.Request{Attributes: weir.Attributes("action", "post", "user", "42")}
			var d weir.Decision
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Do(context.Background(), store.Take, &r, &d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
