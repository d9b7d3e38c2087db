package weir

import (
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// WithLocal has s, this process's memory, decide while the store given with
// [WithStore] is out of reach, for the rules whose on_outage is local. The nodes
// that use the store share each quota then: an nth of it each, rounded up.
// What s counts meanwhile stays there. The caller closes s. Default: those
// rules deny.
func WithLocal(s store.Store, nodes int) Option {
	return func(o *options) error {
		if s == nil {
			return fault.Newf("local store", "nil: leave the option out to deny while the store is out of reach")
		}
		if nodes < 1 {
			return fault.Newf("nodes", "%d: want at least 1", nodes)
		}
		o.local, o.nodes = s, int64(nodes)
		return nil
	}
}

// drop takes the ops that the store could not answer out of the call, all of
// them when it has failed again, and does what their rules say for outages:
// local asks this process's memory, deny and allow need nobody. Memory that is
// full has no more local place to go to, so there local denies: a full table
// never hands out fresh quota.
func (c *call) drop(ctx context.Context, e *Engine, out *store.OutageError, again bool) error {
	c.outage = true
	full := errors.Is(out, store.ErrFull)
	left, from := 0, len(c.local.ops)
	for i := range c.ops {
		dropped := out.Ops == nil || again && !full || slices.Contains(out.Ops, i)
		switch {
		case !dropped:
			c.ops[left], c.of[left] = c.ops[i], c.of[i]
			left++
		case c.policy(c.of[i]) == rule.OutageLocal && e.local != nil && !full:
			c.local.add(c.ops[i], c.of[i], c.rules.share(c.ops[i].Limit, e.nodes))
		default:
			c.decideAlone(&c.ops[i], c.of[i])
		}
	}
	c.ops, c.of = c.ops[:left], c.of[:left]
	err := c.askLocal(ctx, e, from)
	if c.refused() {
		hold(c.ops)
	}
	return err
}

func (c *call) policy(i int) rule.Outage { return c.rules.Rule(i).OnOutage }

// decideAlone answers an op of rule i by its rule's policy and nothing else.
func (c *call) decideAlone(op *store.Op, i int) {
	if op.Role == store.Enforce && c.policy(i) != rule.OutageAllow && c.denied < 0 {
		c.denied = i
	}
}
