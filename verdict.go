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

// writeDecision is the last of the engine's three parts: it writes into d, which is empty, the
// decision of what p has planned and t has the answers to. It is pure. The first rule, in
// the rules' order, that does not admit the request gives the outcome. The decision has a
// receipt only if admitted is set: the take was admitted as a whole. The answer to an earlier request stays, whatever
// the rules say now.
func writeDecision(d *Decision, p *plan.Plan, t *drive.Task, admitted bool) {
	rules, verb := p.Rules, p.Request.Verb
	d.Allowed, d.Outcome, d.Rules = true, rule.Allow, rules.Set
	d.Degraded, d.DegradedReason = t.Outage != nil, t.Reason
	decides, was := verb == store.Take || verb == store.Check, t.WasAdmitted()
	if len(p.Matched) == 0 && !t.WasDenied() {
		d.Unmatched = true
		if decides {
			d.Outcome, d.Allowed = rules.Unmatched()
		}
		if !d.Allowed {
			d.RetryAfter = window.Never
		}
		return
	}
	denial := -1 // the first rule that denies
	deny := func(i int, wait time.Duration) {
		if denial < 0 || i < denial {
			denial = i
		}
		if isLonger(wait, d.RetryAfter) {
			d.RetryAfter, d.RetryRule = wait, rules.Prepared(i).Name
		}
	}
	if cap(d.Usages) < len(t.Ops) {
		d.Usages = make([]Usage, len(t.Ops))
	}
	d.Usages = d.Usages[:len(t.Ops)]
	ops, of, usages := t.Ops, t.Of[:len(t.Ops)], d.Usages
	for n := range ops {
		i, op, u := of[n], &ops[n], &usages[n]
		common := rules.Prepared(i)
		u.Result = op.Result
		u.Rule, u.Kind, u.Shadow, u.Hits, u.BannedUntil = common.Name, common.Kind, common.Shadow, op.N, 0
		u.Overridden = len(p.Overridden) > 0 && slices.Contains(p.Overridden, i)
		if common.SameKey && n > 0 && of[n-1] == i-1 {
			u.Key = usages[n-1].Key
		} else {
			u.Key = rules.ReadableKey(i, p.Request.Values)
		}
		if verb.NeedsReceipt() || verb == store.Record && common.Held {
			u.Hits = 0 // counted by the take, or not counted: a record holds no place
		}
		if op.Result.Banned && op.Hold != nil {
			u.BannedUntil = op.Hold.Decided.Add(op.Result.ResetAfter)
		}
		if decides && !was && drive.Denies(op) {
			deny(i, op.Result.RetryAfter)
		}
		if common.Reports && verb != store.Refund && rules.Rule(i).Reports(&op.Result) {
			d.Triggered = append(d.Triggered, common.Name)
		}
	}
	if decides && t.Denied >= 0 {
		deny(t.Denied, t.RetryAfter)
	}
	if p.VerdictRule >= 0 {
		for _, i := range p.Matched {
			if common := rules.Prepared(i); common.Kind == rule.KindVerdict && !common.Shadow {
				d.Verdicts = append(d.Verdicts, common.Name)
			}
		}
		switch common := rules.Prepared(p.VerdictRule); {
		case !decides || was && !rules.Allows(p.VerdictRule):
		case !rules.Allows(p.VerdictRule):
			deny(p.VerdictRule, window.Never)
		case denial < 0:
			d.Outcome, d.Rule = common.Outcome, common.Name
		}
	}
	if t.WasDenied() {
		d.Allowed, d.Outcome, d.Rule = false, rule.Deny, ""
		if wait := t.Once.Result.RetryAfter; isLonger(wait, d.RetryAfter) {
			d.RetryAfter, d.RetryRule = wait, ""
		}
	}
	if denial >= 0 {
		common := rules.Prepared(denial)
		d.Allowed, d.Outcome, d.Rule = false, common.Outcome, common.Name
	}
	if d.Allowed && admitted && (p.Request.ID != [12]byte{}) {
		d.hold(p, t)
	}
}
