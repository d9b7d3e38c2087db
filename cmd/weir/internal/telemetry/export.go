package telemetry

import (
	"context"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// spanExporter tells of each attempt to send spans. Without it, the error would only
// reach the error handler of the library, which is one for the whole process.
type spanExporter struct {
	sdktrace.SpanExporter
	sent func(Signal, error)
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	tell(e.sent, Traces, e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

// metricExporter tells of each attempt to send metrics.
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
