package server_test

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	metricpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// collector is a receiver of OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []string          // in a short form
	metrics map[string]string // values by name and attributes
	about   map[string]string // attributes of the resource
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{metrics: map[string]string{}, about: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("got content type %s", r.Header.Get("Content-Type"))
		}
		body := r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		switch r.URL.Path {
		case "/v1/traces":
			err = c.readTraces(b)
		case "/v1/metrics":
			err = c.readMetrics(b)
		default:
			err = fmt.Errorf("no such path: %s", r.URL.Path)
		}
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) readTraces(b []byte) error {
	var m tracepb.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &m); err != nil {
		return err
	}
	for _, of := range m.ResourceSpans {
		maps.Copy(c.about, attributes(of.Resource.Attributes))
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				if s.EndTimeUnixNano < s.StartTimeUnixNano {
					return fmt.Errorf("span %s ends before it starts", s.Name)
				}
				text := fmt.Sprintf("%s %s parent=%s %s", s.Name, s.Kind, hex.EncodeToString(s.ParentSpanId), written(attributes(s.Attributes)))
				if s.Status.GetMessage() != "" {
					text += " " + s.Status.Code.String() + ": " + s.Status.Message
				}
				if len(s.ParentSpanId) > 0 {
					text += " trace=" + hex.EncodeToString(s.TraceId)
				}
				c.spans = append(c.spans, text)
			}
		}
	}
	return nil
}

func (c *collector) readMetrics(b []byte) error {
	var m metricpb.ExportMetricsServiceRequest
	if err := proto.Unmarshal(b, &m); err != nil {
		return err
	}
	for _, of := range m.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			for _, metric := range scope.Metrics {
				points := metric.GetSum().GetDataPoints()
				points = append(points, metric.GetGauge().GetDataPoints()...)
				for _, p := range points {
					c.metrics[metric.Name+" "+written(attributes(p.Attributes))] = fmt.Sprint(p.GetAsDouble())
				}
				for _, p := range metric.GetHistogram().GetDataPoints() {
					c.metrics[metric.Name+" count"] = fmt.Sprint(p.Count)
				}
			}
		}
	}
	return nil
}

func attributes(list []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_BoolValue:
			all[a.Key] = fmt.Sprint(v.BoolValue)
		default:
			all[a.Key] = a.Value.GetStringValue()
		}
	}
	return all
}

// written returns attributes, sorted by name.
func written(all map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, strings.TrimPrefix(name, "weir.")+"="+all[name])
	}
	return strings.Join(parts, " ")
}

// Each decision is a span, in the trace of its caller. The metrics are those of
// /metrics. Nothing names a key, unless --log-keys says so.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ keys, ofKey string }{
		{"", ""},
		{"none", ""},
		{"plain", " key=secret-user"},
		{"hashed", " key=d5d24972d8e94d81"},
	} {
		t.Run("keys="+tc.keys, func(t *testing.T) {
			t.Parallel()
			c := newCollector(t)
			rules := rulesFile(t, posts(1))
			s := start(t, func(cfg *config.Config) {
				cfg.Rules, cfg.OTLPEndpoint, cfg.LogKeys = rules, c.URL, tc.keys
				if tc.keys == "hashed" {
					cfg.LogKeysSecret = "a secret of hashes"
				}
			})
			take := func(body, trace string) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.api+"/v1/take", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if trace != "" {
					req.Header.Set("traceparent", trace)
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			const post, trace = `{"attributes":{"action":"post","user":"secret-user"}}`, "0af7651916cd43dd8448eb211c80319c"
			take(post, "")
			take(post, "00-"+trace+"-b7ad6b7169203331-01")
			take(post, "00-"+trace+"-b7ad6b7169203332-00") // the caller's trace is not sampled
			take(`{"attributes":{"other":"secret-user"}}`, "forged")
			call(t, "POST", s.api+"/v1/batch", `{"requests":[`+post+`,`+post[:len(post)-1]+`,"verb":"check"}]}`)
			take(`{"attributes":{"action":"post","user":"secret-user"},"feedback":"x"}`, "")
			if err := s.stop(); err != nil {
				t.Fatal(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			denied := "allowed=false" + tc.ofKey + " namespace=default outcome=deny rule=posts verb="
			want := []string{
				"weir check SPAN_KIND_SERVER parent= " + denied + "check",
				"weir take SPAN_KIND_SERVER parent= " + denied + "take",
				"weir take SPAN_KIND_SERVER parent= allowed=true namespace=default outcome=allow unmatched=true verb=take",
				"weir take SPAN_KIND_SERVER parent= allowed=true namespace=default outcome=allow verb=take",
				"weir take SPAN_KIND_SERVER parent= namespace=default verb=take STATUS_CODE_ERROR: invalid request",
				"weir take SPAN_KIND_SERVER parent=b7ad6b7169203331 " + denied + "take trace=" + trace,
			}
			slices.Sort(c.spans)
			if got := strings.Join(c.spans, "\n"); got != strings.Join(want, "\n") {
				t.Errorf("got spans\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
			for name, value := range map[string]string{
				"weir_decisions_total namespace=default outcome=deny rule=posts verb=take": "3",
				"weir_decision_duration_seconds count":                                     "6",
				"weir_rules namespace=default":                                             "1",
			} {
				if c.metrics[name] != value {
					t.Errorf("metric %s: got %q, want %s", name, c.metrics[name], value)
				}
			}
			if c.about["service.name"] != "weir" || c.about["service.instance.id"] == "" {
				t.Errorf("got resource %v, want the service", c.about)
			}
			for name := range c.metrics {
				if strings.Contains(name, "secret") {
					t.Errorf("got metric %s with a key", name)
				}
			}
		})
	}
}

// A collector that does not answer is logged once, and holds nobody up.
func TestTelemetryWithoutCollector(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	s := start(t, func(c *config.Config) { c.OTLPEndpoint = gone.URL })
	if allowed, _ := s.post(t, "ann"); !allowed {
		t.Error("got a denial")
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s.logs.await(t, 1, `level=WARN msg="telemetry not sent" signal=traces`)
	s.logs.await(t, 1, `level=WARN msg="telemetry not sent" signal=metrics`)
}

// With the level debug each denial is a line. It has a key only if --log-keys says so.
func TestDenialsInTheLog(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"":      `"msg":"denied","namespace":"a","rule":"posts","outcome":"deny","retry_after":"`,
		"plain": `"msg":"denied","namespace":"a","rule":"posts","outcome":"deny","key":"ann","retry_after":"`,
	} {
		dir := rulesDir(t, map[string]string{"a.yaml": posts(1)})
		s := start(t, func(c *config.Config) { c.Rules, c.LogKeys, c.LogLevel, c.LogFormat = dir, keys, "debug", "json" })
		s.postsIn(t, "a", "ann")
		s.logs.await(t, 1, want)
	}
}

// A call over gRPC belongs to the trace in its metadata.
func TestTelemetryOfGRPC(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	rules := rulesFile(t, "rules: [{name: hits, per: [user], limit: 1, window: 1h}]")
	s := start(t, func(cfg *config.Config) { cfg.Rules, cfg.GRPCListen, cfg.OTLPEndpoint = rules, "127.0.0.1:0", c.URL })
	conn := dial(t, s.grpcHost(t), insecure.NewCredentials())
	const trace = "0af7651916cd43dd8448eb211c80319c"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	_, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain:      "web",
		Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "42"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != 1 || !strings.HasPrefix(c.spans[0], "weir take SPAN_KIND_SERVER parent=b7ad6b7169203331 ") || !strings.HasSuffix(c.spans[0], " trace="+trace) {
		t.Errorf("got spans %q, want one in the trace of the caller", c.spans)
	}
}
