package server

import (
	"context"
	"log/slog"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/metrics"
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
	return &observer{metrics.New(metrics.Config{}).Namespace("default"), nil, e}, e.run
}
