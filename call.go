package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// call is one request on its way through the engine. It is read and planned, and then decided: driven
// through the store, and answered. Calls are pooled, so that their memory is reused.
type call struct {
	plan   plan.Plan
	first  drive.Task // the ops that are decided in one step
	second drive.Task // the ops that wait for the outcome of first
	ids    ids
	once   *onceCall // of a request with an idempotency key; nil: it has none
}

// newCall returns a *call for the pool.
func newCall() any {
	c := new(call)
	c.plan.First, c.plan.Second = &c.first.Step, &c.second.Step
	return c
}

// read reads r, finds the rules that match it, and plans what to ask of the store.
func (c *call) read(rules *plan.Rules, verb store.Verb, r *Request, seals *seals) error {
	p, to := &c.plan, &c.plan.Request
	p.Rules, p.VerdictRule = rules, -1
	to.Verb, to.Hits, to.Feedback, to.Exact = verb, r.Hits, r.Feedback, r.Hits > 0
	ends, named := verb.NeedsReceipt(), r.Receipt.Take.ID != [12]byte{}
	switch {
	case verb > store.Renew:
		return fault.Newf("verb", "%d: want Check, Take, Record, Refund, Settle, Cancel or Renew", verb)
	case ends && !named:
		return fault.Newf("receipt", "is missing: a %s needs the receipt of a take", verb)
	case named && !ends:
		return fault.Newf("receipt", "with a %s: want a settle, a cancel or a renew", verb)
	case r.Hits < 0:
		return fault.Newf("hits", "%d: want at least 1, or 0 for 1", r.Hits)
	case r.Hits > window.MaxHits:
		return fault.Newf("hits", "%d: want at most %d", r.Hits, window.MaxHits)
	case r.Feedback != "" && verb != store.Refund:
		return fault.Newf("feedback", "%.64q in a %s: want a refund", r.Feedback, verb)
	case r.Feedback != "":
		if err := rules.CheckFeedback(r.Feedback); err != nil {
			return err
		}
	case ends:
		to.Receipt = r.Receipt.Take
	}
	to.Hits = max(to.Hits, 1)
	to.Values = valuesOf(to.Values, rules.Compiled, r.Attributes)
	p.Matched = rules.Match(to.Values, p.Matched[:0], ends)
	if verb == store.Take && rules.Holds() && !r.Final {
		to.ID = c.ids.next()
		seals.prepare(to)
	} else if ends {
		seals.prepare(to)
	}
	err := p.Make()
	c.first.Verb, c.first.Policies, c.first.Refused = verb, rules, p.Refused()
	c.first.HeldLocally = ends && to.Receipt.Place == seal.Local
	if ends && to.Receipt.IsZero() {
		c.first.Unproven = r.Receipt.String()
	}
	if len(c.second.Ops) > 0 {
		c.planSecond()
	}
	return err
}

// planSecond makes the ops that wait, which are planned, a step of their own.
func (c *call) planSecond() {
	p := &c.plan
	c.second.Verb, c.second.Policies = store.Record, p.Rules
	if p.Rules.Holds() { // a record would hold nothing; the ops do not decide
		c.second.Verb = store.Take
	}
}

// decide makes driver decide c, which was read, unless the decision is larger than o allows, and writes the decision
// into d, which is empty.
func (c *call) decide(ctx context.Context, driver *drive.Driver, d *Decision, o *run.Options) error {
	var err error
	if o.MaxSize > 0 || o.Admit != nil {
		var size run.Size
		if err = c.addSize(&size, o); err == nil && o.Admit != nil {
			err = o.Admit(size)
		}
	}
	switch {
	case err != nil:
		return err
	case len(c.first.Ops) == 0:
		c.first.Denied, err = -1, ctx.Err()
		if err == nil && c.once != nil {
			err = c.lookOnce(ctx, driver)
		}
	case c.once != nil:
		err = c.beginOnce()
	}
	if err != nil {
		return err
	}
	if len(c.first.Ops) > 0 {
		driver.Run(ctx, &c.first, nil)
	}
	if c.first.Replayed() {
		c.endOnce()
	}
	if c.first.Err != nil {
		return c.failed()
	}
	if len(c.second.Ops) > 0 {
		c.finish(driver, c.first.IsDenied())
	}
	writeDecision(d, &c.plan, &c.first, true)
	d.Replayed = c.first.Replayed()
	return nil
}

// addSize adds the size of the usages of c to s. It returns an error if s is larger than o allows then.
func (c *call) addSize(s *run.Size, o *run.Options) error {
	for _, rules := range [...][]int{c.first.Of, c.second.Of} {
		s.Usages += len(rules)
		for _, i := range rules {
			s.Text += int64(len(c.plan.Rules.Prepared(i).Name) + c.plan.Rules.ReadableKeyLen(i, c.plan.Request.Values))
			if o.Escapes != nil {
				s.Text += int64(o.Escapes(c.plan.Rules.ReadableKey(i, c.plan.Request.Values)))
			}
		}
	}
	if o.MaxSize > 0 && s.Bytes() > o.MaxSize {
		return run.ErrLarge
	}
	return nil
}

// failed returns the error of a call that was not decided.
func (c *call) failed() error { return fmt.Errorf("weir: %s: %w", c.first.Verb, c.first.Err) }

// beginOnce gives the first step of c its record, if there is room for it.
func (c *call) beginOnce() error {
	if c.once.expires = c.once.records.add(time.Now(), c.once.first.N); c.once.expires == 0 {
		return c.refuse(once.ErrFull)
	}
	if c.first.Once = &c.once.first; c.first.Refused {
		c.first.Once.Role = store.Look
	}
	return nil
}

// lookOnce looks for the record of c in the store, although no rule counts c now: the earlier request may have met other
// rules.
func (c *call) lookOnce(ctx context.Context, d *drive.Driver) error {
	own := c.once.first
	own.N = 0
	err := d.Look(ctx, c.plan.Request.Verb, &own)
	switch out, ok := errors.AsType[*store.OutageError](err); {
	case ok:
		c.first.Outage, c.first.Reason = out, cmp.Or(out.Reason, drive.Unknown)
		return nil
	case err != nil:
		return c.refuse(err)
	case own.Result.Before == 0:
		return nil
	}
	c.once.first.Result, c.first.Once = own.Result, &c.once.first
	return nil
}

// refuse returns err as the error of c.
func (c *call) refuse(err error) error {
	c.first.Err = err
	return c.failed()
}

// endOnce ends the first step of c, which was replayed: a take that has the answer of an earlier one has its receipt, and what the second step
// holds belongs to that, too. Without a rule of the earlier one, c is another request, unless that was denied: nothing is
// then known of what it has counted and holds.
func (c *call) endOnce() {
	if len(c.first.Ops) == 0 && c.first.Err == nil && !c.first.WasDenied() {
		c.first.Err = store.ErrConflict
	}
	for i := range c.first.Ops {
		if h := c.first.Ops[i].Hold; h != nil && h.ID != [12]byte{} && c.plan.Request.Verb == store.Take {
			c.plan.Request.ID = h.ID
		}
	}
	for i := range c.second.Ops {
		if h := c.second.Ops[i].Hold; h != nil {
			h.ID = c.plan.Request.ID
		}
	}
}

// finish counts a take in the rules after a verdict unless it is denied; then it
// only evaluates those rules. That is a step of
// its own, which is safe because those rules decide nothing. The decision stands
// when the step fails.
func (c *call) finish(d *drive.Driver, denied bool) {
	if denied {
		for i := range c.second.Ops {
			c.second.Ops[i].N = 0
		}
	}
	if c.once != nil {
		c.second.Once = &c.once.second
	}
	// What was admitted counts, also when the caller has gone meanwhile.
	d.Run(context.Background(), &c.second, nil)
	switch {
	case c.second.Err != nil:
		c.degrade(c.second.Err, drive.Unknown)
		return
	case c.second.Outage != nil:
		c.degrade(c.second.Outage, c.second.Reason)
	}
	for i, of := range c.second.Of {
		at, _ := slices.BinarySearch(c.first.Of, of)
		c.first.Of, c.first.Ops = slices.Insert(c.first.Of, at, of), slices.Insert(c.first.Ops, at, c.second.Ops[i])
	}
}

// degrade makes the decision degraded by err. The first reason stays.
func (c *call) degrade(err error, reason store.Reason) {
	if c.first.Outage == nil {
		c.first.Reason = reason
	}
	c.first.Outage = err
}

// reset drops what c refers to, so that the pool keeps none of the request.
func (c *call) reset() {
	if c.once != nil {
		c.once.release(c.first.Err != nil)
		c.once = nil
	}
	c.first.Reset()
	if c.second.Policies != nil { // there was a second step
		c.second.Reset()
	}
	c.plan.Reset()
}
