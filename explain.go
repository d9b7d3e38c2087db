package weir

import (
	"context"
	"slices"
	"strconv"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// RuleExplanation shows how one rule applies to a request.
type RuleExplanation struct {
	// Rule and Kind are the rule's name and kind.
	Rule string
	Kind rule.Kind
	// Matched reports whether the rule matched the request and was reached.
	Matched bool
	// Shadow reports whether the rule is in shadow mode.
	Shadow bool
	// Reasons holds, as readable text, why the rule did not match or was not
	// reached. For a rule that matched after a verdict, it holds why the rule
	// decides nothing; for one whose quota is leased ([rule.Rule.Lease]), where it
	// was decided, and what a credit admits past it. Otherwise it is empty.
	Reasons []string
	// Usage holds the rule's numbers. It is nil if the rule did not match or is
	// a verdict, and if an outage policy decided without numbers.
	Usage *Usage
}

// Explain returns the answer of [Engine.Check], and for each rule in force, in the
// order of the rules, whether it matches the request or why not. It counts nothing.
func (e *Engine) Explain(ctx context.Context, r Request) (d Decision, why []RuleExplanation, err error) {
	rules, err := e.ready()
	if err != nil {
		return Decision{}, nil, err
	}
	c := newCall().(*call)
	if err = e.read(c, rules, store.Check, &r); err == nil {
		o, _ := ctx.Value(run.Key{}).(run.Options)
		err = c.decide(ctx, &e.driver, &d, &o)
	}
	if err != nil {
		return Decision{}, nil, err
	}
	why = make([]RuleExplanation, rules.Len())
	numbers := make(map[string]*Usage, len(d.Usages))
	for i := range d.Usages {
		numbers[d.Usages[i].Rule] = &d.Usages[i]
	}
	p := &c.plan
	for i := range why {
		ru := rules.Rule(i)
		matched, reasons := rules.Why(i, p.Request.Values)
		if matched && p.VerdictRule >= 0 && i > p.VerdictRule {
			matched, reasons = afterVerdict(p, i)
		}
		why[i] = RuleExplanation{
			Rule: ru.Name, Kind: ru.Kind(), Matched: matched, Shadow: ru.Mode == rule.Shadow,
			Reasons: reasons, Usage: numbers[ru.Name],
		}
	}
	if leaser, ok := e.driver.Store.(hook.Leaser); ok {
		for n, i := range c.first.Of { // what an outage policy decided without numbers is not among them
			switch op := &c.first.Ops[n]; {
			case op.Limit.Lease == 0:
				continue
			case leaser.Leased(op):
				why[i].Reasons = append(why[i].Reasons, "decided by this instance, from a lease")
			case d.Degraded:
				continue
			default:
				why[i].Reasons = append(why[i].Reasons, "decided by the store: nothing is leased here")
			}
			if credit := c.first.Ops[n].Limit.Lease; credit > 0 {
				why[i].Reasons = append(why[i].Reasons, "each instance can admit "+strconv.FormatInt(credit, 10)+" past the quota")
			}
		}
	}
	return d, why, nil
}

// afterVerdict reports whether rule i, whose conditions hold and which is after the
// verdict, matches, and why it does not decide.
func afterVerdict(p *plan.Plan, i int) (matched bool, reasons []string) {
	if slices.Contains(p.Matched, i) {
		return true, []string{"decides nothing: " + p.Rules.Rule(p.VerdictRule).Name + " decided before"}
	}
	last := p.Rules.Rule(p.Matched[len(p.Matched)-1]).Name
	return false, []string{"not reached: " + last + " decided before"}
}
