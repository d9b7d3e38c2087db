package weir

import (
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// outageRetry is what a denial because of an outage tells the caller to wait:
// nobody knows how long an outage lasts.
const outageRetry = time.Second

// answer makes the decision of what the store answered. The first rule, in the
// rules' order, that does not admit the request gives the outcome.
func (c *call) answer(d *Decision) {
	d.Allowed, d.Outcome, d.Degraded, d.Rules = true, rule.Allow, c.outage, c.rules.Set
	decides := c.decides()
	first := -1
	deny := func(i int, retryAfter time.Duration) {
		if first < 0 || i < first {
			first = i
		}
		if d.RetryAfter != window.Never {
			d.RetryAfter = max(d.RetryAfter, retryAfter)
		}
		if retryAfter == window.Never {
			d.RetryAfter = window.Never
		}
	}
	for n := range c.ops {
		i, op := c.of[n], &c.ops[n]
		if i == c.verdict {
			continue // its veto
		}
		r := c.rules.Rule(i)
		d.Limits = append(d.Limits, Usage{})
		u := &d.Limits[len(d.Limits)-1]
		u.Rule, u.Kind, u.Key = r.Name, r.Kind(), c.rules.Key(i, c.values)
		u.Shadow, u.Result = r.Mode == rule.Shadow, op.Result
		if decides && op.Role == store.Enforce && !op.Result.Allowed {
			deny(i, op.Result.RetryAfter)
		}
		if c.fired(r, &op.Result) {
			d.Triggered = append(d.Triggered, r.Name)
		}
	}
	for _, i := range c.matched {
		if c.verdict < 0 {
			break
		}
		if r := c.rules.Rule(i); r.Kind() == rule.KindVerdict && r.Mode == rule.Enforce {
			d.Verdicts = append(d.Verdicts, r.Name)
		}
	}
	if decides && c.denied >= 0 {
		deny(c.denied, outageRetry)
	}
	if c.verdict >= 0 && decides {
		v := c.rules.Rule(c.verdict)
		switch {
		case !c.rules.Allows(c.verdict):
			deny(c.verdict, window.Never)
		case first < 0:
			d.Outcome, d.Rule = v.Then, v.Name
		}
	}
	if first < 0 {
		return
	}
	r := c.rules.Rule(first)
	d.Allowed, d.Outcome, d.Rule = false, r.Then, r.Name
	if d.Outcome == "" {
		d.Outcome = rule.Deny
	}
}

// fired says that the trigger r reports: its window holds at least its number,
// and has crossed it in this call where it reports once.
func (c *call) fired(r *rule.Rule, res *window.Result) bool {
	if r.Kind() != rule.KindTrigger || r.Mode == rule.Shadow || c.verb == store.Refund || res.Used < r.Trigger {
		return false
	}
	return !r.Once || res.Before < r.Trigger
}
