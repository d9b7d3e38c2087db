package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/httplimit"
	"github.com/weirhq/weir/internal/guardtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// BenchmarkHandler measures a handler without and with limits. The difference is what
// the middleware adds.
func BenchmarkHandler(b *testing.B) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	m := guardtest.Limiter(b, weir.Sliding(1<<40, time.Minute))
	deny := guardtest.Limiter(b, weir.Sliding(0, time.Minute))
	e := guardtest.Engine(b, []rule.Rule{{Name: "visits", Per: []string{"ip"}, Quota: &rule.Quota{Value: 1_000_000_000}, Window: window.Sliding(time.Minute)}}, nil)
	for name, h := range map[string]http.Handler{
		"no limit": next,
		"limiter":  httplimit.Must(httplimit.Keys(m, httplimit.PeerIP)).Handler(next),
		"rules":    httplimit.Must(httplimit.Rules(e, byIP)).Handler(next),
		"denied":   httplimit.Must(httplimit.Keys(deny, httplimit.PeerIP)).Handler(next),
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			w := &discarding{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// discarding is a writer that keeps only the header.
type discarding struct{ header http.Header }

func (d *discarding) Header() http.Header         { return d.header }
func (d *discarding) WriteHeader(int)             {}
func (d *discarding) Write(p []byte) (int, error) { return len(p), nil }
