package weir

import (
	"slices"
	"time"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// The verdict is the last of the engine's three parts: it makes a Decision of
// what was planned and what was answered. It is pure.

// verdict writes the decision about p into d, which is empty; t has the
// answers. The first rule, in the rules' order, that does not admit the
// request gives the outcome.
func verdict(d *Decision, p *plan.Plan, t *drive.Task) {
	rules := p.Rules
	d.Allowed, d.Outcome, d.Rules = true, rule.Allow, rules.Set
	d.Degraded, d.DegradedReason = t.Outage != nil, t.Reason
	decides := p.Decides()
	if len(p.Matched) == 0 {
		unmatched(d, decides)
		return
	}
	denial := denial{rule: -1}
	d.Usages = slices.Grow(d.Usages, len(t.Ops))[:len(t.Ops)]
	for n := range t.Ops {
		i, op, u := t.Of[n], &t.Ops[n], &d.Usages[n]
		r := rules.Rule(i)
		u.Rule, u.Kind, u.Key = r.Name, r.Kind(), rules.Key(i, p.Request.Values)
		u.Shadow, u.Hits, u.Result, u.BannedUntil = r.Mode == rule.Shadow, op.N, op.Result, 0
		if p.Request.Verb.Ends() || p.Request.Verb == store.Record && r.Window.Kind == window.KindHeld {
			u.Hits = 0 // counted by the take, or not counted: a record holds no place
		}
		if op.Result.Banned && op.Hold != nil {
			u.BannedUntil = op.Hold.Decided.Add(op.Result.ResetAfter)
		}
		if decides && drive.Denies(op) {
			denial.add(d, i, r.Name, op.Result.RetryAfter)
		}
		if u.Kind == rule.KindTrigger && fired(r, p.Request.Verb, &op.Result) {
			d.Triggered = append(d.Triggered, r.Name)
		}
	}
	if p.Verdict >= 0 {
		for _, i := range p.Matched {
			if r := rules.Rule(i); r.Kind() == rule.KindVerdict && r.Mode == rule.Enforce {
				d.Verdicts = append(d.Verdicts, r.Name)
			}
		}
	}
	if decides && t.Denied >= 0 {
		denial.add(d, t.Denied, rules.Rule(t.Denied).Name, t.RetryAfter)
	}
	if decides && p.Verdict >= 0 {
		v := rules.Rule(p.Verdict)
		switch {
		case p.Refused():
			denial.add(d, p.Verdict, v.Name, window.Never)
		case denial.rule < 0:
			d.Outcome, d.Rule = v.Then, v.Name
		}
	}
	if denial.rule < 0 {
		return
	}
	r := rules.Rule(denial.rule)
	d.Allowed, d.Outcome, d.Rule = false, r.Then, r.Name
	if d.Outcome == "" {
		d.Outcome = rule.Deny
	}
}

// unmatched writes the decision about a request that no rule matches.
func unmatched(d *Decision, decides bool) {
	d.Unmatched = true
	if !decides {
		return
	}
	if d.Outcome, d.Allowed = d.Rules.Unmatched(); !d.Allowed {
		d.RetryAfter = window.Never
	}
}

// denial gathers the rules that deny.
type denial struct {
	rule int // the first of them, or -1
}

// add adds rule i, called name, which asks to wait. d gets the longest wait.
func (f *denial) add(d *Decision, i int, name string, wait time.Duration) {
	if f.rule < 0 || i < f.rule {
		f.rule = i
	}
	d.waits(wait, name)
}

// waits notes that the rule called name denies and asks to wait. The longest wait stays.
func (d *Decision) waits(wait time.Duration, name string) {
	if d.RetryAfter == window.Never {
		return
	}
	if wait == window.Never || wait > d.RetryAfter {
		d.RetryAfter, d.RetryRule = wait, name
	}
}

// fired reports whether the trigger r reports: its window holds at least its
// number and, for one that reports once, has crossed it in this call.
func fired(r *rule.Rule, verb store.Verb, res *window.Result) bool {
	if r.Mode == rule.Shadow || verb == store.Refund || res.Used < r.Trigger {
		return false
	}
	return !r.Once || res.Before < r.Trigger
}
