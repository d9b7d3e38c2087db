package drive

import (
	"sync"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Driver drives tasks. Its fields are set once, before its first use; it is
// safe for concurrent use then.
type Driver struct {
	Store store.Store

	// Local decides in an outage for ops whose policy is local. Nil: they deny.
	Local store.Store

	// Nodes is how many processes share each quota in an outage. At least 1.
	Nodes int64

	// Told, when not nil, is called with the cause of each outage that a
	// decision met, and of each give-back that failed.
	Told func(verb store.Verb, err error)

	shares sync.Map // *window.Compiled → the part of it that one node may admit
}

// share returns the part of limit that one of d.Nodes may admit.
func (d *Driver) share(limit *window.Compiled) *window.Compiled {
	if d.Nodes <= 1 {
		return limit
	}
	if part, ok := d.shares.Load(limit); ok {
		return part.(*window.Compiled)
	}
	part := limit.Share(d.Nodes)
	d.shares.Store(limit, part)
	return part
}

// Renew drops what d has computed for limits. The caller calls it when it
// replaces them.
func (d *Driver) Renew() { d.shares.Clear() }

func (d *Driver) tell(verb store.Verb, err error) {
	if d.Told != nil {
		d.Told(verb, err)
	}
}
