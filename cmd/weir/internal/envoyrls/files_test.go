package envoyrls_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// TestFiles runs scripts of calls that the files of envoyproxy/ratelimit decide. The
// commands are those of [TestNative], but for the first:
//
//	files [headers] [request-headers] [shadow] [quota] [together] [metadata] [months] [observe]   a file; counters begin anew
//	change                                     another file, with the same counters
func TestFiles(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/files/*.txt", func(t *testing.T, path string) {
		now := window.At(scripttest.Start)
		var api *envoyrls.API
		var engine *weir.Engine
		var files *envoyfile.Config
		var seen strings.Builder
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "files", "change":
				var err error
				files, err = envoyfile.New([]envoyfile.Source{{Name: "f.yaml", Text: []byte(d.Input)}}, envoyfile.Options{SpareDenied: d.HasArg("together"), CalendarMonths: d.HasArg("months")})
				if err != nil {
					return err.Error() + "\n"
				}
				if d.Cmd == "change" {
					if err := engine.SetRules(files.Set); err != nil {
						t.Fatal(err)
					}
					return ""
				}
				counts := memstore.New(memstore.WithClock(func() window.Instant { return now }))
				t.Cleanup(func() { counts.Close() })
				engine, err = weir.NewEngine(files.Set, weir.WithStore(counts))
				if err != nil {
					t.Fatal(err)
				}
				r := &envoyrls.Reference{
					Files: func() *envoyfile.Config { return files }, Now: func() window.Instant { return now }, Shadow: d.HasArg("shadow"), Quota: d.HasArg("quota"),
					Together: d.HasArg("together"), Metadata: d.HasArg("metadata"),
				}
				if d.HasArg("headers") {
					r.Headers = [3]string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}
				}
				if d.HasArg("request-headers") {
					r.RequestHeaders = [3]string{"Limit", "Remaining", "Reset"}
				}
				if d.HasArg("observe") {
					r.Observe = func(o envoyrls.Observed) {
						fmt.Fprintf(&seen, "observed %v: %d hits, %d used of %d, over %v\n", o.Limit.MetricKeys(o.Values), o.Hits, o.Used, o.Quota, o.Over)
					}
					r.Answered = func(c envoyrls.Answered) {
						if c.Err != nil || c.Shadowed {
							fmt.Fprintf(&seen, "answered: shadowed %v, error %v\n", c.Shadowed, c.Err)
						}
					}
				}
				api = envoyrls.New(namespace.Only(engine), envoyrls.Config{Headers: headers.Format{Dialect: headers.None}, Reference: r})
				return ""
			case "wait":
				now = now.Add(d.Duration(t))
				return ""
			case "call":
				seen.Reset()
				return call(t, api, engine, request(t, d)) + seen.String()
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}
