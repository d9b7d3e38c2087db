package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/durable"
	"github.com/weirhq/weir/store/memstore"
)

// openData opens the data directory, and returns before its counters are loaded.
func (c *counts) openData(cfg config.Config, bytes int64, log *slog.Logger) error {
	options := []durable.Option{
		durable.WithMaxBytes(bytes), durable.InBackground(),
		durable.WithEvents(func(e durable.Event) { logData(log, cfg.Data, e) }),
	}
	if cfg.Sync != "" {
		options = append(options, durable.WithSync(durable.Sync(cfg.Sync)))
	}
	if cfg.SyncInterval > 0 {
		options = append(options, durable.WithInterval(cfg.SyncInterval))
	}
	kept, err := durable.Open(cfg.Data, options...)
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	c.kept, c.memory, c.data = kept, kept.Memory(), cfg.Data
	if cfg.ServeWhileLoading && c.shared == nil {
		c.meanwhile = memstore.New(memstore.WithMaxBytes(bytes))
	}
	return nil
}

// closeData writes what was counted last.
func (c *counts) closeData(log *slog.Logger) {
	if c.meanwhile != nil {
		_ = c.meanwhile.Close()
	}
	if err := c.kept.Close(); err != nil {
		log.Error("the last counters could not be written to the data directory, and are lost", "data", c.data, "err", err)
	}
}

// local returns the store that counts in this process.
func (c *counts) local() store.Store {
	if c.kept != nil {
		return c.kept
	}
	return c.memory
}

// loaded reports whether c.memory can be used.
func (c *counts) loaded() bool { return c.kept == nil || c.kept.IsLoaded() }

// await waits until c.memory can be used. It reports false when ctx is done.
func (c *counts) await(ctx context.Context) bool {
	if c.kept == nil {
		return true
	}
	select {
	case <-c.kept.Loaded():
		return true
	case <-ctx.Done():
		return false
	}
}

// refuses reports whether requests are refused now, because the counters are being
// loaded.
func (c *counts) refuses() bool {
	return c.kept != nil && c.shared == nil && c.meanwhile == nil && !c.kept.IsLoaded()
}

// refusing returns refuses, or nil where it is always false.
func (c *counts) refusing() func() bool {
	if c.kept == nil || c.shared != nil || c.meanwhile != nil {
		return nil
	}
	return c.refuses
}

// dataStats returns the state of the data directory for the metrics.
func (c *counts) dataStats() metrics.DataStats {
	s := c.kept.Stats()
	return metrics.DataStats{
		Loading: s.Loading, Loaded: s.Loaded, LoadTime: s.LoadTime, Lag: s.Lag, Bytes: s.Bytes, Live: s.Live,
		Flushes: s.Flushes, Failures: s.Failures, FlushTime: s.FlushTime,
		WrittenBytes: s.WrittenBytes, WrittenKeys: s.WrittenKeys, Rounds: s.Rounds, Damaged: s.Damaged, Failing: s.Failing,
	}
}

// logData logs what happened to the data directory.
func logData(log *slog.Logger, dir string, e durable.Event) {
	level := slog.LevelInfo
	switch e.Kind {
	case durable.Failing:
		level = slog.LevelError
	case durable.Damaged, durable.Missing:
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, "data directory: "+e.String(), "data", dir)
}
