package weirotel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/contrib/weirotel"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/weirtest"
)

// counts returns the counters that r reads, one line each, sorted.
func counts(r sdkmetric.Reader) []string {
	var all metricdata.ResourceMetrics
	if err := r.Collect(context.Background(), &all); err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				line := m.Name
				for _, a := range p.Attributes.ToSlice() {
					line += fmt.Sprintf(" %s=%v", strings.TrimPrefix(string(a.Key), "weir."), a.Value.AsInterface())
				}
				lines = append(lines, fmt.Sprint(line, ": ", p.Value))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// One of two posts is admitted.
func Example() {
	reader := sdkmetric.NewManualReader()
	observer, err := weirotel.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	if err != nil {
		fmt.Println(err)
		return
	}
	posts := weir.MustLimiter(weir.Sliding(1, time.Minute), weir.WithName("posts"), weir.WithObserver(observer))
	defer posts.Close()
	for range 2 {
		if _, err := posts.Allow(context.Background(), "ann"); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(strings.Join(counts(reader), "\n"))
	// Output:
	// weir.decisions degraded=false outcome=allow rule= verb=take: 1
	// weir.decisions degraded=false outcome=deny rule=posts verb=take: 1
}

// Problems are counted, and are events of the caller's span.
func TestEvents(t *testing.T) {
	t.Parallel()
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	o, err := weirotel.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	s := weirtest.NewStore()
	m, err := weir.NewLimiter(weir.Sliding(1, time.Minute), weir.WithName("posts"), weir.WithObserver(o), weir.WithStore(s), weir.WithOutage(rule.OutageDeny))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test").Start(t.Context(), "request")
	_, _ = m.Allow(ctx, "ann")
	_, _ = m.AllowN(ctx, "ann", -1)
	s.Fail(errors.New("refused"))
	_, _ = m.Allow(ctx, "ann")
	span.End()
	var events []string
	for _, e := range spans.Ended()[0].Events() {
		events = append(events, e.Name)
	}
	if want := []string{"weir: not decided", "weir: store unavailable", "weir: denied"}; !slices.Equal(events, want) {
		t.Errorf("got events %q, want %q", events, want)
	}
	want := []string{
		"weir.decisions degraded=false outcome=allow rule= verb=take: 1",
		"weir.decisions degraded=true outcome=deny rule=posts verb=take: 1",
		"weir.failures verb=take: 1",
		"weir.outages reason=test: 1",
	}
	if got := counts(reader); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
