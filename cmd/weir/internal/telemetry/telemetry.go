// Package telemetry sends traces and metrics to a collector of OpenTelemetry, by
// OTLP over HTTP. Each decision is a span. Metrics are those that Prometheus reads,
// under the same names. Nothing is sent unless an endpoint is configured.
package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/fault"
)

// Signal is a kind of telemetry: a label of metrics.
type Signal string

// Signals.
const (
	Traces  Signal = "traces"
	Metrics Signal = "metrics"
)

// Config configures [Start].
type Config struct {
	// Endpoint is the URL of the collector, such as http://localhost:4318. Empty: the
	// standard variables of the environment name it, or nothing is sent.
	Endpoint string

	// Version is the version of the service.
	Version string

	// Metrics returns the metrics to send.
	Metrics prometheus.Gatherer

	// Keys states how spans show keys.
	Keys top.KeyText

	// Sent is called after each attempt to send, with its error. It may be called
	// concurrently.
	Sent func(what Signal, err error)
}

// Telemetry sends traces and metrics. Make one with [Start]. It is safe for
// concurrent use. A nil Telemetry sends nothing.
type Telemetry struct {
	keys   top.KeyText
	tracer trace.Tracer // nil: no traces
	spread propagation.TraceContext
	stop   []func(context.Context) error
}

// The environment variables that this package reads. The exporters read more of them.
const (
	envEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envProtocol = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envDisabled = "OTEL_SDK_DISABLED"
)

// wanted returns the signals to send.
func wanted(endpoint string) (signals []Signal, err error) {
	if strings.EqualFold(os.Getenv(envDisabled), "true") {
		return nil, nil
	}
	for _, s := range []Signal{Traces, Metrics} {
		name := strings.ToUpper(string(s))
		own := "OTEL_EXPORTER_OTLP_" + name + "_ENDPOINT"
		if endpoint == "" && os.Getenv(envEndpoint) == "" && os.Getenv(own) == "" {
			continue
		}
		exporter := "OTEL_" + name + "_EXPORTER"
		switch value := os.Getenv(exporter); value {
		case "", "otlp":
		case "none":
			continue
		case "prometheus":
			if s == Metrics { // they are available at /metrics
				continue
			}
			fallthrough
		default:
			return nil, fault.Newf(exporter, "%q: want otlp or none", value)
		}
		for _, name := range []string{"OTEL_EXPORTER_OTLP_" + name + "_PROTOCOL", envProtocol} {
			if value := os.Getenv(name); value != "" && value != "http/protobuf" {
				return nil, fault.Newf(name, "%q: weir speaks http/protobuf only; collectors accept it on port 4318", value)
			}
		}
		if err := checkSecrets(name); err != nil {
			return nil, err
		}
		signals = append(signals, s)
	}
	return signals, nil
}

// Start starts sending. It returns nil if nothing is to be sent. It does not wait for the
// collector.
func Start(ctx context.Context, c Config) (*Telemetry, error) {
	signals, err := wanted(c.Endpoint)
	if err != nil || len(signals) == 0 {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "weir"),
			attribute.String("service.version", c.Version),
			attribute.String("service.instance.id", rand.Text()),
		),
		resource.WithFromEnv(), // which overrides the others
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t := &Telemetry{keys: c.Keys}
	for _, s := range signals {
		start := t.traces
		if s == Metrics {
			start = t.metrics
		}
		if err := start(ctx, c, about); err != nil {
			return nil, errors.Join(fmt.Errorf("otlp: %w", err), t.Close(ctx))
		}
	}
	return t, nil
}

// at returns the URL to which a signal is sent.
func at(endpoint string, s Signal) string {
	return strings.TrimSuffix(endpoint, "/") + "/v1/" + string(s)
}

// proxy returns the proxy of a request, and an error for one that a collector redirects: it could be sent to an
// address that trusts this machine. An HTTP client of our own would ignore the variables for certificates.
func proxy(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, fmt.Errorf("redirected to %s; redirects are not followed", r.URL.Redacted())
	}
	return http.ProxyFromEnvironment(r)
}

func (t *Telemetry) traces(ctx context.Context, c Config, about *resource.Resource) error {
	options := []otlptracehttp.Option{otlptracehttp.WithProxy(proxy)}
	if c.Endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(at(c.Endpoint, Traces)))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(about),
		sdktrace.WithBatcher(spanExporter{exporter, c.Sent}),
	)
	t.tracer = provider.Tracer("github.com/weirhq/weir", trace.WithInstrumentationVersion(c.Version))
	t.stop = append(t.stop, provider.Shutdown)
	return nil
}

func (t *Telemetry) metrics(ctx context.Context, c Config, about *resource.Resource) error {
	options := []otlpmetrichttp.Option{otlpmetrichttp.WithProxy(proxy)}
	if c.Endpoint != "" {
		options = append(options, otlpmetrichttp.WithEndpointURL(at(c.Endpoint, Metrics)))
	}
	exporter, err := otlpmetrichttp.New(ctx, options...)
	if err != nil {
		return err
	}
	provider := sdkmetric.NewMeterProvider(
		sdkmetric.WithResource(about),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter{exporter, c.Sent},
			sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(c.Metrics))))),
	)
	t.stop = append(t.stop, provider.Shutdown)
	return nil
}

// Close sends what waits, and ends. It returns when ctx is done at the latest.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	var err error
	for _, stop := range t.stop {
		err = errors.Join(err, stop(ctx))
	}
	return err
}

// Traces reports whether t sends traces.
func (t *Telemetry) Traces() bool { return t != nil && t.tracer != nil }

// Handler returns h with the trace of the caller (the header traceparent) in the
// context of requests. Without traces it returns h.
func (t *Telemetry) Handler(h http.Handler) http.Handler {
	if !t.Traces() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Traceparent"]) > 0 {
			r = r.WithContext(t.Context(r.Context(), r.Header.Get))
		}
		h.ServeHTTP(w, r)
	})
}

// Context returns ctx with the trace of a caller, whose metadata get returns by name.
// It is for front ends without [net/http].
func (t *Telemetry) Context(ctx context.Context, get func(name string) string) context.Context {
	if !t.Traces() {
		return ctx
	}
	return t.spread.Extract(ctx, carrier(get))
}

// carrier implements [propagation.TextMapCarrier] for metadata that is only read.
type carrier func(name string) string

// Get implements [propagation.TextMapCarrier].
func (c carrier) Get(name string) string { return c(name) }

// Set implements [propagation.TextMapCarrier]. It does nothing.
func (carrier) Set(string, string) {}

// Keys implements [propagation.TextMapCarrier].
func (carrier) Keys() []string { return nil }

// Timeout is the time-out for [Telemetry.Close].
const Timeout = 5 * time.Second

// spanExporter reports each attempt to send spans. Without it, only the error handler of the
// library, which is global, would get the error.
type spanExporter struct {
	sdktrace.SpanExporter
	sent func(Signal, error)
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	tell(e.sent, Traces, e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

// metricExporter reports each attempt to send metrics.
type metricExporter struct {
	sdkmetric.Exporter
	sent func(Signal, error)
}

// Export implements [sdkmetric.Exporter].
func (e metricExporter) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	tell(e.sent, Metrics, e.Exporter.Export(ctx, metrics))
	return nil
}

func tell(sent func(Signal, error), what Signal, err error) {
	if sent != nil {
		sent(what, err)
	}
}

// checkSecrets returns an error if a variable that can have a secret cannot be read: the
// headers and the URLs of a signal. The exporters would log the whole value, and ignore
// it. The error does not have the value.
func checkSecrets(signal string) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_" + signal + "_HEADERS"} {
		if value := os.Getenv(name); value != "" && !isHeaders(value) {
			return fault.Newf(name, "want NAME=VALUE, or several with commas between; a value has no commas and no %%, which are written %%2C and %%25")
		}
	}
	for _, name := range []string{envEndpoint, "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"} {
		if _, err := url.Parse(os.Getenv(name)); err != nil {
			return fault.Newf(name, "want a URL such as http://localhost:4318")
		}
	}
	return nil
}

// isHeaders reports whether the exporters can read text as header fields.
func isHeaders(text string) bool {
	for field := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(field) == "" {
			continue
		}
		name, value, ok := strings.Cut(field, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsFunc(name, notOfName) {
			return false
		}
		if _, err := url.PathUnescape(value); err != nil {
			return false
		}
	}
	return true
}

// notOfName reports whether r cannot be in the name of a header field.
func notOfName(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}
