package server

import (
	"context"
	"log/slog"
	"sync"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/record"
	"github.com/weirhq/weir/cmd/weir/internal/telemetry"
	"github.com/weirhq/weir/cmd/weir/internal/top"
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

// keyTexts returns how keys are shown in events and in the lists of top keys and denials, and how in
// logs and traces. Only callers with the scope read and the webhooks in cfg see events and lists, of which denials are
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

// newRecorder returns the recorder of requests, or nil if cfg has none. lists says how keys are shown in lists; where it
// hides them, they are hashed, so that equal keys stay equal.
func newRecorder(cfg config.Config, lists top.KeyText) (*record.Recorder, error) {
	if cfg.Record == 0 {
		return nil, nil //nolint:nilnil // without --record there is none
	}
	if !lists.Hides() {
		return record.New(int64(cfg.Record), nil), nil
	}
	if _, shown := lists.Of(""); !shown {
		var err error
		if lists, err = top.NewKeyText(top.KeyHashed, cfg.LogKeysSecret); err != nil {
			return nil, err
		}
	}
	return record.New(int64(cfg.Record), func(value string) string {
		text, _ := lists.Of(value)
		return text
	}), nil
}

// newTops returns the collector of top keys and denials. It keeps denials where the counters
// are: in the shared store, or in the data directory.
func newTops(cfg config.Config, backends *backends, keys top.KeyText) *top.Collector {
	c := top.Config{Keys: cfg.TopKeys, Text: keys}
	side := backends.local.Kept
	switch {
	case backends.shared != nil:
		c.Remote = backends.shared.Log
	case side != nil && c.Keys > 0:
		c.Side, side = side, nil
	}
	if side != nil {
		top.Abandon(side)
	}
	return top.New(c, "")
}
