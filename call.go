package weir

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
)

// call is one request on its way through the engine. Calls are pooled, so that
// their memory is reused.
type call struct {
	request plan.Plan
	now     drive.Task // the ops that are decided in one step
	later   drive.Task // the ops that wait for the outcome of now
	ids     ids
}

// plan reads r and plans what to ask of the store. values is the vector of r, or nil.
func (c *call) plan(rules *plan.Rules, seals *seals, verb store.Verb, r *Request, values []string) error {
	p := &c.request
	p.Rules = rules
	if err := r.read(verb, rules.Compiled, values, &p.Request); err != nil {
		return err
	}
	switch {
	case verb == store.Take && rules.Holds() && !r.Final:
		p.Request.ID = c.ids.next()
		seals.prepare(&p.Request)
	case verb.Ends():
		seals.prepare(&p.Request)
	}
	err := p.Make()
	c.now.Verb, c.now.Policies, c.now.Refused = verb, rules, p.Refused()
	c.now.HeldLocally = verb.Ends() && p.Request.Receipt.Place == seal.Local
	c.now.Ops, c.now.Of = p.Now.List, p.Now.Of
	if len(p.Later.List) > 0 {
		c.planLater()
	}
	return err
}

// planLater plans the step of the ops that wait.
func (c *call) planLater() {
	p := &c.request
	c.later.Verb, c.later.Policies = store.Record, p.Rules
	if p.Rules.Holds() { // a record would hold nothing; the ops do not decide
		c.later.Verb = store.Take
	}
	c.later.Ops, c.later.Of = p.Later.List, p.Later.Of
}

// run decides c with d. answer is the store's answer if it has been asked already: an
// error, or nil.
func (c *call) run(ctx context.Context, d *drive.Driver, answer error) error {
	switch {
	case len(c.now.Ops) == 0:
		if err := ctx.Err(); err != nil {
			return err
		}
		c.now.Denied = -1
	default:
		d.Run(ctx, &c.now, answer)
	}
	if c.now.Err != nil {
		return c.failed()
	}
	if len(c.later.Ops) > 0 {
		c.finish(d, c.now.IsDenied())
	}
	return nil
}

// failed returns the error of a call that was not decided.
func (c *call) failed() error { return fmt.Errorf("weir: %s: %w", c.now.Verb, c.now.Err) }

// finish counts a take in the rules behind a verdict unless it is denied; then it
// only evaluates those rules. That is a step of
// its own, which is safe because those rules decide nothing. The decision stands
// when the step fails.
func (c *call) finish(d *drive.Driver, denied bool) {
	if denied {
		for i := range c.later.Ops {
			c.later.Ops[i].N = 0
		}
	}
	// What was admitted counts, also when the caller has gone meanwhile.
	d.Run(context.Background(), &c.later, nil)
	switch {
	case c.later.Err != nil:
		c.degrade(c.later.Err, drive.Unknown)
		return
	case c.later.Outage != nil:
		c.degrade(c.later.Outage, c.later.Reason)
	}
	for i, of := range c.later.Of {
		at, _ := slices.BinarySearch(c.now.Of, of)
		c.now.Of, c.now.Ops = slices.Insert(c.now.Of, at, of), slices.Insert(c.now.Ops, at, c.later.Ops[i])
	}
}

// degrade makes the decision degraded by err. The first reason stays.
func (c *call) degrade(err error, reason store.Reason) {
	if c.now.Outage == nil {
		c.now.Reason = reason
	}
	c.now.Outage = err
}

// write writes the decision into d, which is empty. It has a receipt only if the take
// was admitted as a whole.
func (c *call) write(d *Decision, admitted bool) {
	v := verdictOf(&c.request, &c.now)
	if v.write(d); d.Allowed && admitted {
		d.hold(&c.request, &c.now)
	}
}

// reset drops what c refers to, so that the pool keeps none of the request.
func (c *call) reset() {
	p := &c.request
	p.Now.List, p.Now.Of = c.now.Ops, c.now.Of // which may have grown
	if c.later.Policies != nil {               // it was planned
		p.Later.List, p.Later.Of = c.later.Ops, c.later.Of
		c.later.Ops = nil
		c.later.Reset()
	}
	c.now.Reset()
	p.Reset()
}
