package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/window"
)

// BenchmarkOverride reports what an override adds to a take over HTTP, as ratios of the shortest of many
// short turns: with one, and with 100,000.
func BenchmarkOverride(b *testing.B) {
	counts := []int{0, 1, 100_000}
	urls, shortest := make([]string, len(counts)), make([]time.Duration, len(counts))
	for i, n := range counts {
		engine, _ := scripttest.NewEngine(b, "rules: [{name: calls, per: [c], limit: 1000000000000, window: {fixed: 1h}}]", func() window.Instant { return 1 })
		var changes []override.Change
		for k := range n {
			changes = append(changes, override.Change{
				Rule: "calls", Attributes: []string{"c"}, Key: "\x0f" + fmt.Sprintf("customer-%06d", k), Limit: override.Limit{Quota: 1<<40 + int64(k%100)},
			})
		}
		var none *override.Set
		engine.Override(none.With(changes))
		server := httptest.NewServer(httpapi.New(namespace.Only(engine), httpapi.Config{}))
		b.Cleanup(server.Close)
		urls[i] = server.URL + "/v1/take"
	}
	const calls = 50
	for b.Loop() {
		for i, url := range urls {
			began := time.Now()
			for range calls {
				resp, err := http.Post(url, "application/json", strings.NewReader(`{"attributes":{"c":"customer-000000"}}`))
				if err != nil {
					b.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if strings.Contains(string(body), `"override":true`) != (i > 0) {
					b.Fatalf("%d overrides: got %s", counts[i], body)
				}
			}
			if took := time.Since(began); shortest[i] == 0 || took < shortest[i] {
				shortest[i] = took
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(shortest[0].Nanoseconds())/calls, "ns/none")
	b.ReportMetric(float64(shortest[1])/float64(shortest[0]), "x/one")
	b.ReportMetric(float64(shortest[2])/float64(shortest[0]), "x/many")
}
