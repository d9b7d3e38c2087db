package weir

import (
	"slices"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// drop takes the ops that the store could not answer out of the call. A rule
// that enforces then allows or denies, as its policy for outages says; memory
// that is full has no more local place to go to, so there "local" denies: a
// full table never hands out fresh quota.
func (c *call) drop(out *store.OutageError) {
	c.outage = true
	left := 0
	for i := range c.ops {
		if out.Ops != nil && !slices.Contains(out.Ops, i) {
			c.ops[left], c.of[left] = c.ops[i], c.of[i]
			left++
			continue
		}
		r := c.rules.Rule(c.of[i])
		if c.ops[i].Role == store.Enforce && r.OnOutage != rule.OutageAllow && c.denied < 0 {
			c.denied = c.of[i]
		}
	}
	c.ops, c.of = c.ops[:left], c.of[:left]
	if c.refused() {
		c.hold()
	}
}
