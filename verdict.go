package weir

import (
	"time"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// verdict is the last of the engine's three parts: it makes a Decision of what was
// planned and what was answered. It is pure. A verdict rule ([rule.KindVerdict]) is something
// else: a rule that sets the outcome and counts nothing.
type verdict struct {
	rules   *plan.Rules
	verb    store.Verb
	values  []string
	matched []int // rules, ascending

	ops []store.Op // with their answers
	of  []int      // ops[i] belongs to rule of[i]; ascending

	first  int // the first verdict rule that is enforced, or -1
	denied int // the first rule whose outage policy denies, or -1

	outage     error // why the store could not answer some op, or nil
	reason     store.Reason
	retryAfter time.Duration // after a denial because of the outage
}

// verdictOf returns the verdict about p, to which t has the answers.
func verdictOf(p *plan.Plan, t *drive.Task) verdict {
	return verdict{
		rules: p.Rules, verb: p.Request.Verb, values: p.Request.Values, matched: p.Matched,
		ops: t.Ops, of: t.Of, first: p.Verdict, denied: t.Denied,
		outage: t.Outage, reason: t.Reason, retryAfter: t.RetryAfter,
	}
}

// write writes the decision into d, which is empty. The first rule, in the rules' order,
// that does not admit the request gives the outcome.
func (v *verdict) write(d *Decision) {
	rules := v.rules
	d.Allowed, d.Outcome, d.Rules = true, rule.Allow, rules.Set
	d.Degraded, d.DegradedReason = v.outage != nil, v.reason
	decides := v.verb == store.Take || v.verb == store.Check
	if len(v.matched) == 0 {
		v.noMatch(d, decides)
		return
	}
	denial := -1 // the first rule that denies
	deny := func(i int, wait time.Duration) {
		if denial < 0 || i < denial {
			denial = i
		}
		d.noteWait(wait, rules.Prepared(i).Name)
	}
	if cap(d.Usages) < len(v.ops) {
		d.Usages = make([]Usage, len(v.ops))
	}
	d.Usages = d.Usages[:len(v.ops)]
	for n := range v.ops {
		i, op, u := v.of[n], &v.ops[n], &d.Usages[n]
		p := rules.Prepared(i)
		u.Rule, u.Kind, u.Shadow, u.Hits, u.Result, u.BannedUntil = p.Name, p.Kind, p.Shadow, op.N, op.Result, 0
		if p.SameKey && n > 0 && v.of[n-1] == i-1 {
			u.Key = d.Usages[n-1].Key
		} else {
			u.Key = rules.Key(i, v.values)
		}
		if v.verb.Ends() || v.verb == store.Record && p.Held {
			u.Hits = 0 // counted by the take, or not counted: a record holds no place
		}
		if op.Result.Banned && op.Hold != nil {
			u.BannedUntil = op.Hold.Decided.Add(op.Result.ResetAfter)
		}
		if decides && drive.Denies(op) {
			deny(i, op.Result.RetryAfter)
		}
		if p.Kind == rule.KindTrigger && fired(rules.Rule(i), v.verb, &op.Result) {
			d.Triggered = append(d.Triggered, p.Name)
		}
	}
	if decides && v.denied >= 0 {
		deny(v.denied, v.retryAfter)
	}
	if v.first >= 0 {
		for _, i := range v.matched {
			if p := rules.Prepared(i); p.Kind == rule.KindVerdict && p.Role == store.Enforce {
				d.Verdicts = append(d.Verdicts, p.Name)
			}
		}
		switch p := rules.Prepared(v.first); {
		case !decides:
		case !rules.Allows(v.first):
			deny(v.first, window.Never)
		case denial < 0:
			d.Outcome, d.Rule = p.Outcome, p.Name
		}
	}
	if denial >= 0 {
		p := rules.Prepared(denial)
		d.Allowed, d.Outcome, d.Rule = false, p.Outcome, p.Name
	}
}

// noMatch writes the decision about a request that no rule matches.
func (v *verdict) noMatch(d *Decision, decides bool) {
	d.Unmatched = true
	if !decides {
		return
	}
	if d.Outcome, d.Allowed = v.rules.Unmatched(); !d.Allowed {
		d.RetryAfter = window.Never
	}
}

// noteWait notes that the rule called name denies and asks to wait. The longest wait stays.
func (d *Decision) noteWait(wait time.Duration, name string) {
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
