package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/store"
)

// BenchmarkObserved measures a take with the observer of a service: without a
// collector, with one and no span sampled, and with all of them sampled.
func BenchmarkObserved(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	file, err := rulefile.Parse("rules.yaml", []byte(posts(1_000_000_000)), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, tc := range []struct{ name, endpoint, sampler string }{
		{"off", "", ""}, {"unsampled", collector.URL, "always_off"}, {"sampled", collector.URL, "always_on"},
	} {
		b.Run(tc.name, func(b *testing.B) {
			b.Setenv("OTEL_TRACES_SAMPLER", tc.sampler)
			observer, end := server.NewObserver(tc.endpoint)
			defer end()
			e, err := weir.NewEngine(file.Set, weir.WithObserver(observer))
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
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
