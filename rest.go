package weir

import (
	"context"
	"slices"

	"github.com/weirhq/weir/store"
)

// queue is where ops of rules behind a verdict go. Where limits before it may
// deny a take that it allows, they wait for those: see [call.askRest].
func (c *call) queue() *call {
	if c.verb != store.Take || !c.rules.Allows(c.verdict) || !slices.ContainsFunc(c.ops, limits) {
		return c
	}
	if c.rest == nil {
		c.rest = new(call)
	}
	return c.rest
}

// follow makes op, of a rule behind a verdict, one that counts what a record
// counts, and a take that is allowed.
func (c *call) follow(op *store.Op) {
	op.Role, op.CountDenied = store.Always, false
	if c.verb == store.Take && !c.rules.Allows(c.verdict) {
		op.N = 0
	}
}

// limits says that op may deny a take.
func limits(op store.Op) bool { return op.Role == store.Enforce && op.N > 0 }

// askRest has the rules behind a verdict count a take that the limits before it
// have admitted, and look at one that was denied. That is a step of its own,
// which is safe because they decide nothing. The decision stands when it fails.
func (c *call) askRest(e *Engine) {
	r := c.rest
	if r == nil || len(r.ops) == 0 {
		return
	}
	r.rules, r.verb, r.verdict, r.denied = c.rules, store.Record, -1, -1
	if c.refused() || slices.ContainsFunc(c.ops, denies) {
		for i := range r.ops {
			r.ops[i].N = 0
		}
	}
	// What was admitted counts, also when the caller has gone meanwhile.
	if err := r.ask(context.Background(), e); err != nil {
		c.outage = true
		return
	}
	c.ops, c.of, c.outage = append(c.ops, r.ops...), append(c.of, r.of...), c.outage || r.outage
}
