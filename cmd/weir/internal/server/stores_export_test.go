package server

import (
	"context"
	"log/slog"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/store"
)

// LogChange returns the function that logs changes of a store's nodes.
var LogChange = logChange

// NewInstances returns the function that counts the instances on s until its
// context is done, and the one that returns their number.
func NewInstances(s store.Store) (run func(context.Context, *slog.Logger), number func() int) {
	i := newInstances(s)
	return func(ctx context.Context, log *slog.Logger) { i.beat(ctx, log); i.run(ctx, log) }, i.number
}

// NewEpisodes returns an observer that logs outages, and the function that runs
// it.
func NewEpisodes() (to weir.Observer, run func(context.Context, *slog.Logger)) {
	e := newEpisodes()
	return &observer{Namespace: metrics.New(metrics.Config{}).Namespace("default"), episodes: e}, e.run
}

// NewObserver returns the observer of an engine in a service with a collector, if
// endpoint is not empty, and the function that ends it.
func NewObserver(endpoint string) (to weir.Observer, end func()) {
	numbers, log := metrics.New(metrics.Config{}), slog.New(slog.DiscardHandler)
	cfg := config.Default()
	cfg.OTLPEndpoint = endpoint
	_, outside, err := keyTexts(cfg)
	if err != nil {
		panic(err)
	}
	t, err := openTelemetry(context.Background(), cfg, numbers, outside, log)
	if err != nil {
		panic(err)
	}
	s := &namespaces{parts: parts{episodes: newEpisodes(), telemetry: t, log: log, kept: &namespace.Kept{}}}
	return s.observer(&reloader{numbers: numbers.Namespace("default"), log: log}, "default", nil), func() { endTelemetry(t, log) }
}
