package server

import (
	"context"
	"log/slog"
	"sync"

	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
	"github.com/weirhq/weir/cmd/weir/internal/top"
)

// keeper has what the service keeps beside its counters: overrides and the audit trail, in the shared
// store, in the data directory, or in memory.
type keeper struct {
	namespace.Kept
	in    *backends
	local *kept.Memory // nil: in the shared store
	ended func(namespace string, o *overrides.Override)
}

// newKeeper opens what is kept in c. keys is how keys are shown in the log.
func newKeeper(c *backends, keys top.KeyText, log *slog.Logger) *keeper {
	k := &keeper{in: c}
	book := overrides.Config{
		Failed: func(err error) {
			log.Warn("overrides cannot be read or kept; those that are known stay in force, and after a start there are none", "error", err)
		},
		Answered: func() { log.Info("overrides can be read again") },
		Ended: func(namespace string, o overrides.Override) {
			log.Info("override ended", "namespace", namespace, "rule", o.Rule)
			k.ended(namespace, &o)
		},
	}
	trail := audit.Config{Log: log, HideKeys: keys.Hides()}
	switch {
	case c.shared != nil:
		book.Store, trail.Remote = c.shared, c.shared.Log
	case c.local.Kept != nil:
		k.local = kept.NewMemory(c.local.Kept)
		book.Store, trail.Side = k.local.Durable(), c.local.Kept
	default:
		k.local = kept.NewMemory(nil)
		book.Store = k.local
		log.Info("overrides and the audit trail end with the process: give --data or --store to keep them")
	}
	k.Overrides, k.Audit = overrides.New(book), audit.New(trail)
	return k
}

// begin reads the overrides in a shared store, so that the first decision knows them, unless the store does not
// answer. Those in a data directory are read by run, when it is loaded: until then requests are refused.
func (k *keeper) begin(ctx context.Context) {
	if k.in.shared != nil {
		_ = k.Overrides.Read(ctx) // it is logged
	}
}

// run follows what other instances change until ctx is done.
func (k *keeper) run(ctx context.Context) {
	var trail sync.WaitGroup
	defer trail.Wait()
	trail.Go(func() { k.Audit.Run(ctx) })
	if k.local != nil && k.in.local.Await(ctx) {
		_ = k.Overrides.Read(ctx) // it is logged
		k.in.known.Store(true)
	}
	k.Overrides.Run(ctx)
}

// close writes what waits. It must be called before the stores are closed.
func (k *keeper) close() {
	k.Audit.Close()
	if k.local != nil {
		k.local.Close()
	}
}
