package drive

import (
	"context"
	"sync"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Driver drives tasks. Its fields are set once, before its first use; it is
// safe for concurrent use then.
type Driver struct {
	Store store.Store

	// Timed is Store, if it bounds the time of a decision, and nil otherwise.
	Timed hook.Timed

	// Local decides in an outage for ops whose policy is local. Nil: they deny.
	Local store.Store

	// Reports, when not nil, is given what Local counts in an outage.
	Reports *report.Reporter

	// Nodes is how many processes share each quota in an outage. At least 1.
	Nodes int64

	// NodesNow, when not nil, returns what takes the place of Nodes.
	NodesNow func() int

	// Told, when not nil, is called with the cause of each outage that a
	// decision met, and of each give-back that failed.
	Told func(ctx context.Context, verb store.Verb, err error)

	shares sync.Map // *window.Compiled → share
}

// share is the part of a limit that one of several nodes may admit.
type share struct {
	nodes int64
	limit *window.Compiled
}

// share returns the part of limit that one node may admit.
func (d *Driver) share(limit *window.Compiled) *window.Compiled {
	nodes := d.Nodes
	if d.NodesNow != nil {
		nodes = int64(d.NodesNow())
	}
	if nodes <= 1 {
		return limit
	}
	if kept, ok := d.shares.Load(limit); ok {
		if part := kept.(share); part.nodes == nodes {
			return part.limit
		}
	}
	part := limit.Share(nodes)
	d.shares.Store(limit, share{nodes, part})
	return part
}

// Renew drops what d has computed for limits. The caller calls it when it
// replaces them.
func (d *Driver) Renew() { d.shares.Clear() }

func (d *Driver) tell(ctx context.Context, verb store.Verb, err error) {
	if d.Told != nil {
		d.Told(ctx, verb, err)
	}
}
