package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/telemetry"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// openTelemetry starts to send traces and metrics, if cfg or the environment names a
// collector. Otherwise it returns nil.
func openTelemetry(ctx context.Context, cfg config.Config, numbers *metrics.Metrics, keys top.KeyText, log *slog.Logger) (*telemetry.Telemetry, error) {
	s := &sending{numbers: numbers, log: log, failing: map[telemetry.Signal]bool{}}
	return telemetry.Start(ctx, telemetry.Config{
		Endpoint: cfg.OTLPEndpoint, Version: Version(), Metrics: numbers.Gatherer(), Keys: keys, Sent: s.sent,
	})
}

// endTelemetry sends what waits.
func endTelemetry(t *telemetry.Telemetry, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), telemetry.Timeout)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("telemetry not sent", "error", err)
	}
}

// sending counts the attempts to send telemetry, and logs when they begin to fail and
// when they succeed again.
type sending struct {
	numbers *metrics.Metrics
	log     *slog.Logger

	mu      sync.Mutex
	failing map[telemetry.Signal]bool // guarded by mu
}

func (s *sending) sent(what telemetry.Signal, err error) {
	s.numbers.Sent(string(what), err == nil)
	s.mu.Lock()
	before := s.failing[what]
	s.failing[what] = err != nil
	s.mu.Unlock()
	switch {
	case err != nil && !before:
		s.log.Warn("telemetry not sent", "signal", string(what), "error", err)
	case err == nil && before:
		s.log.Info("telemetry sent again", "signal", string(what))
	}
}

// keyTexts returns how keys are shown in the lists of top keys and denials, and how in
// logs and traces. Only callers with the scope read see the lists, of which denials are
// kept with the counters for a day, so that they have keys unless cfg says otherwise. Logs
// and traces leave the machine, so that they have none.
func keyTexts(cfg config.Config) (lists, outside top.KeyText, err error) {
	form := top.KeyForm(cfg.LogKeys)
	if form == "" {
		outside, err = top.NewKeyText(top.KeyNone, "")
		return lists, outside, err
	}
	lists, err = top.NewKeyText(form, cfg.LogKeysSecret)
	return lists, lists, err
}

// newTops returns the collector of top keys and denials. It keeps denials where the counters
// are: in the shared store, or in the data directory.
func newTops(cfg config.Config, backends *backends, keys top.KeyText) *top.Collector {
	c := top.Config{Keys: cfg.TopKeys, Text: keys}
	switch {
	case backends.shared != nil && backends.shared.Log != nil:
		c.Remote = backends.shared.Log
	case backends.shared == nil && backends.local.Kept != nil:
		c.Side = backends.local.Kept
	}
	return top.New(c, "")
}

// observer returns an observer that passes the calls of a namespace's engine to all other observers.
type observer struct {
	*metrics.Namespace
	name     string         // of the namespace
	tops     *top.Collector // or nil
	episodes *episodes
	traces   *telemetry.Telemetry // nil: no spans
	denials  *slog.Logger         // nil: they are not logged
	keys     top.KeyText          // of denials
}

// Decided implements [weir.Observer].
func (o *observer) Decided(ctx context.Context, verb store.Verb, d *weir.Decision, took time.Duration) {
	o.Namespace.Decided(ctx, verb, d, took)
	o.tops.Decided(ctx, verb, d, took)
	if d.Degraded {
		o.episodes.degraded()
	}
	if o.denials != nil && verb == store.Take && !d.Allowed {
		o.deny(d)
	}
	if o.traces != nil {
		o.traces.Decided(ctx, o.name, verb, d, took)
	}
}

// Failed implements [weir.Observer].
func (o *observer) Failed(ctx context.Context, verb store.Verb, err error) {
	o.Namespace.Failed(ctx, verb, err)
	if o.traces != nil {
		o.traces.Failed(ctx, o.name, verb, err)
	}
}

// Outage implements [weir.Observer].
func (o *observer) Outage(_ context.Context, _ store.Verb, err error) { o.episodes.outage(err) }

// deny logs a denial.
func (o *observer) deny(d *weir.Decision) {
	fields := []any{"rule", d.Rule, "outcome", d.Outcome}
	for i := range d.Usages {
		if u := &d.Usages[i]; u.Rule == d.Rule {
			if key, shown := o.keys.Of(u.Key); shown {
				fields = append(fields, "key", key)
			}
			break
		}
	}
	if d.RetryAfter != window.Never {
		fields = append(fields, "retry_after", d.RetryAfter.String())
	}
	o.denials.Debug("denied", fields...)
}
