package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/stores"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/leasestore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// backends has the stores of the service: in memory, or a store that instances
// share. While that is unavailable, it counts in memory.
type backends struct {
	local  *stores.Local
	shared stores.Shared // nil: counts in memory only
	leases store.Store   // in front of shared, which it closes
	here   *instances    // nil: their number is configured
	events atomic.Pointer[events.Hub]
	past   past        // outages of the shared store
	data   string      // the data directory; empty: none
	place  string      // of the counts, for the log
	known  atomic.Bool // it is loaded, and its overrides are in force
	beside weir.Option // to decide in local; the same for all engines, which report together; nil: none

	reporting   *weir.Engine // without rules: what engines count beside is reported as long as it is open
	longestHold atomic.Int64 // in nanoseconds; of all rules that were in force
}

// openBackends opens the store that cfg names. It returns when a shared store is
// ready, or unavailable, which it logs.
func openBackends(ctx context.Context, cfg config.Config, log *slog.Logger) (*backends, error) {
	c := &backends{data: cfg.Data, place: "memory"}
	if cfg.Data != "" {
		c.place = "memory, kept in " + cfg.Data
	}
	changed := logChange(log)
	if cfg.Store != "" {
		at, err := stores.Parse(cfg.Store)
		if err != nil {
			return nil, err
		}
		c.place = at.Location
		if c.shared, err = at.Open(ctx, stores.Options{Timeout: cfg.StoreTimeout, Changed: func(n remote.Change) {
			changed(n)
			c.past.note(n, time.Now())
			c.reportChange(n)
		}}); err != nil {
			return nil, err
		}
		if cfg.Nodes == config.AutoNodes {
			c.here = newInstances(c.shared)
		}
		c.leases = leasestore.New(c.shared, func() int {
			if c.here != nil {
				return c.here.number()
			}
			return cfg.Nodes
		})
	}
	var err error
	c.local, err = stores.OpenLocal(stores.LocalOptions{
		MaxBytes: tableBytes(cfg, log), Dir: cfg.Data, Sync: cfg.Sync, Interval: cfg.SyncInterval,
		Meanwhile: cfg.ServeWhileLoading && c.shared == nil,
		Event: func(level slog.Level, text string) {
			log.Log(context.Background(), level, "data directory: "+text, "data", cfg.Data)
		},
	})
	if err != nil {
		if c.shared != nil {
			err = errors.Join(err, c.leases.Close())
		}
		return nil, err
	}
	switch {
	case c.shared != nil:
		c.beside = weir.WithLocal(c.local.Store(), max(1, cfg.Nodes))
	case c.local.Meanwhile != nil:
		c.beside = weir.WithLocal(c.local.Meanwhile, 1)
	}
	none, err := rule.New(nil, nil)
	if err == nil {
		c.reporting, err = weir.NewEngine(none, c.options()...)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// reportChange reports a change of a node as an event.
func (c *backends) reportChange(n remote.Change) {
	reason := ""
	if n.Err != nil {
		reason = string(reasonOf(n.Err))
	}
	c.events.Load().Outage(n.Addr, reason)
}

// report makes hub get the changes of the nodes from now on.
func (c *backends) report(hub *events.Hub) {
	c.events.Store(hub)
	for _, n := range c.nodes() {
		if n.Unavailable {
			hub.Outage(n.Addr, "unavailable")
		}
	}
}

// close frees what openBackends opened. It loses no counts of a shared store, and none
// of a data directory, unless writing them fails, which is the error.
func (c *backends) close() error {
	_ = c.reporting.Close() // reports; does not own its store
	if c.shared != nil {
		_ = c.leases.Close()
	}
	if err := c.local.Close(); err != nil {
		return fmt.Errorf("the last counters could not be written to the data directory %s, and are lost: %w", c.data, err)
	}
	return nil
}

// options returns the options of an engine or a limiter that counts in c.
func (c *backends) options() []weir.Option {
	var places []weir.Option
	if c.shared == nil {
		places = append(places, weir.WithStore(c.local.Store()))
	} else {
		places = append(places, weir.WithStore(c.leases))
	}
	if c.beside != nil {
		places = append(places, c.beside)
	}
	if c.here != nil {
		places = append(places, weir.WithNodes(c.here.number))
	}
	return places
}

// waits reports whether a decision can wait for something outside of this process.
func (c *backends) waits() bool { return c.shared != nil || c.local.Kept != nil }

// loading reports whether requests need what is being loaded from the data directory: the counters and the
// overrides, or, with a shared store, what memory counts in an outage.
func (c *backends) loading() bool {
	if c.local.Kept == nil || c.local.Meanwhile != nil {
		return false
	}
	if c.shared != nil {
		return !c.local.Loaded() && c.away() != ""
	}
	return !c.known.Load()
}

// refusing returns loading if all requests have to wait for it, and otherwise nil: with a shared store only requests wait
// that ask local memory.
func (c *backends) refusing() func() bool {
	if c.shared != nil || c.local.Kept == nil {
		return nil
	}
	return c.loading
}

// secret returns the secret of the store that has the counters, or of this process's memory while a shared store
// has not answered yet.
func (c *backends) secret() []byte {
	if c.shared != nil {
		if all := c.shared.Secrets(false); len(all) > 0 {
			return all[0][:]
		}
	}
	return c.local.Memory.Secrets(false)[0][:]
}

// nodes returns the state of the servers of the shared store. There are none without one.
func (c *backends) nodes() []remote.Node {
	if c.shared == nil {
		return nil
	}
	return c.shared.Nodes()
}

// away returns a line about the nodes of the shared store that are out of
// reach, or an empty string when all answer.
func (c *backends) away() string {
	if c.shared == nil {
		return ""
	}
	nodes, out := c.nodes(), 0
	for _, n := range nodes {
		if n.Unavailable {
			out++
		}
	}
	switch {
	case len(nodes) == 0:
		return "store unavailable: rules follow their on_outage\n"
	case out > 0:
		return fmt.Sprintf("store unavailable (%d of %d nodes): rules follow their on_outage\n", out, len(nodes))
	}
	return ""
}

// ping checks that the shared store answers. Memory always does.
func (c *backends) ping(ctx context.Context) error {
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

// logChange logs that a node of the shared store becomes unavailable, or answers again.
func logChange(log *slog.Logger) func(remote.Change) {
	return func(c remote.Change) {
		switch {
		case c.Err != nil:
			log.Warn("store unavailable, rules follow their on_outage", "node", c.Addr, "reason", string(c.Err.Reason), "error", c.Err.Err)
		case c.Gone:
			log.Info("unavailable node has left the store", "node", c.Addr, "after", c.Lasted.String(), "outages", c.Missed)
		default:
			log.Info("store answers again", "node", c.Addr, "after", c.Lasted.String(), "outages", c.Missed)
		}
	}
}
