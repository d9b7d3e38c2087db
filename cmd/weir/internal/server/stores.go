package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/durable"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// counts is where the service counts: in memory, or in a store that instances
// share. While that is out of reach, it counts in memory.
type counts struct {
	memory *memstore.Store
	shared *redisstore.Store // nil: counts in memory only
	here   *instances        // nil: their number is configured

	// kept is memory with its data directory; nil without one. Until it is loaded,
	// memory must not be used.
	kept *durable.Store

	// meanwhile counts until kept is loaded; nil: requests are refused.
	meanwhile *memstore.Store
	data      string // the directory
}

// openCounts opens the store that cfg names. It returns when a shared store is
// ready, or out of reach, which it logs.
func openCounts(ctx context.Context, cfg config.Config, log *slog.Logger) (*counts, error) {
	c := &counts{}
	if cfg.Store != "" {
		where, err := redisstore.Parse(cfg.Store)
		if err != nil {
			return nil, err
		}
		if cfg.StoreTimeout > 0 {
			where.Timeout = cfg.StoreTimeout
		}
		where.Changed = logChange(log)
		if c.shared, err = where.Open(ctx); err != nil {
			return nil, err
		}
		if cfg.Nodes == config.AutoNodes {
			c.here = newInstances(c.shared)
		}
	}
	bytes := tableBytes(cfg, log)
	if cfg.Data == "" {
		c.memory = memstore.New(memstore.WithMaxBytes(bytes))
		return c, nil
	}
	if err := c.openData(cfg, bytes, log); err != nil {
		if c.shared != nil {
			err = errors.Join(err, c.shared.Close())
		}
		return nil, err
	}
	return c, nil
}

// close frees what openCounts opened. It loses no counts of a shared store, and none
// of a data directory, unless writing them fails, which it logs.
func (c *counts) close(log *slog.Logger) {
	if c.shared != nil {
		_ = c.shared.Close()
	}
	if c.kept != nil {
		c.closeData(log)
		return
	}
	_ = c.memory.Close()
}

// options returns the options of an engine that counts in c.
func (c *counts) options(cfg config.Config) []weir.EngineOption {
	var options []weir.EngineOption
	if n := int64(cfg.Bounds.Answer); n > 0 {
		options = append(options, weir.WithMaxSize(n))
	}
	for _, o := range c.places(cfg) {
		options = append(options, o)
	}
	return options
}

// places returns the options of an engine or a limiter that counts in c.
func (c *counts) places(cfg config.Config) []weir.Option {
	var places []weir.Option
	if c.shared == nil {
		places = append(places, weir.WithStore(c.local()))
		if c.meanwhile != nil {
			places = append(places, weir.WithLocal(c.meanwhile, 1))
		}
		return places
	}
	places = append(places, weir.WithStore(c.shared), weir.WithLocal(c.local(), max(1, cfg.Nodes)))
	if c.here != nil {
		places = append(places, weir.WithNodes(c.here.number))
	}
	return places
}

// location returns where the counts are, for the log.
func (c *counts) location() string {
	if c.shared == nil {
		if c.kept != nil {
			return "memory, kept in " + c.data
		}
		return "memory"
	}
	return c.shared.Location()
}

// nodes returns the state of the shared store for the metrics.
func (c *counts) nodes() []metrics.NodeStats {
	nodes := c.shared.Nodes()
	all := make([]metrics.NodeStats, len(nodes))
	for i, n := range nodes {
		all[i] = metrics.NodeStats{Addr: n.Addr, CutOff: n.CutOff, CutOffs: n.CutOffs, InFlight: n.InFlight, Outages: n.Reasons}
	}
	return all
}

// away returns a line about the nodes of the shared store that are out of
// reach, or an empty string when all answer.
func (c *counts) away() string {
	if c.shared == nil {
		return ""
	}
	nodes, out := c.shared.Nodes(), 0
	for _, n := range nodes {
		if n.CutOff {
			out++
		}
	}
	switch {
	case len(nodes) == 0:
		return "store out of reach: rules follow their on_outage\n"
	case out > 0:
		return fmt.Sprintf("store out of reach (%d of %d nodes): rules follow their on_outage\n", out, len(nodes))
	}
	return ""
}

// ping checks that the shared store answers. Memory always does.
func (c *counts) ping(ctx context.Context) error {
	if away := c.away(); away != "" {
		return errors.New(strings.TrimSpace(away))
	}
	if c.shared == nil {
		return nil
	}
	_, err := c.shared.Read(ctx, &store.Op{
		Space: store.NewSpace("", "alive", "alive", 0),
		Limit: window.MustCompile(window.Limit{Quota: 1, Window: window.Fixed(time.Second)}),
	})
	return err
}

// logChange logs that a node of the shared store is cut off, or answers again.
func logChange(log *slog.Logger) func(redisstore.Change) {
	return func(c redisstore.Change) {
		switch {
		case c.CutOff:
			log.Warn("store out of reach, rules follow their on_outage", "node", c.Addr, "reason", string(c.Reason), "error", c.Err)
		case c.Gone:
			log.Info("node out of reach has left the store", "node", c.Addr, "after", c.Lasted.String(), "outages", c.Missed)
		default:
			log.Info("store answers again", "node", c.Addr, "after", c.Lasted.String(), "outages", c.Missed)
		}
	}
}
