package weir

import (
	"context"
	"slices"

	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
)

// Explanation shows how the rules apply to a request.
type Explanation struct {
	// Decision is what a check answers.
	Decision Decision
	// Rules are all the rules, in order.
	Rules []RuleExplanation
}

// RuleExplanation shows how one rule applies to a request.
type RuleExplanation struct {
	Rule    string
	Kind    rule.Kind
	Matched bool
	// Shadow reports whether the rule is in shadow mode.
	Shadow bool
	// Reasons say why the rule did not match or was not reached. For a rule
	// that matched they say why it does not decide.
	Reasons []string
	// Usage are the rule's numbers, nil where it did not match or does not
	// count.
	Usage *Usage
}

// Explain returns which rules match the request, which do not and why, and
// what a check answers. It counts nothing.
func (e *Engine) Explain(ctx context.Context, r Request) (Explanation, error) {
	rules, err := e.ready()
	if err != nil {
		return Explanation{}, err
	}
	c := call{}
	if err := c.plan(rules, Check, &r); err != nil {
		return Explanation{}, err
	}
	if err := c.run(ctx, &e.driver); err != nil {
		return Explanation{}, err
	}
	x := Explanation{Rules: make([]RuleExplanation, rules.Len())}
	verdict(&x.Decision, &c.request, &c.now)
	numbers := make(map[string]*Usage, len(x.Decision.Usages))
	for i := range x.Decision.Usages {
		numbers[x.Decision.Usages[i].Rule] = &x.Decision.Usages[i]
	}
	p := &c.request
	for i := range x.Rules {
		ru := rules.Rule(i)
		matched, reasons := rules.Why(i, p.Request.Values)
		if matched && p.Verdict >= 0 && i > p.Verdict {
			matched, reasons = behind(p, i)
		}
		x.Rules[i] = RuleExplanation{
			Rule: ru.Name, Kind: ru.Kind(), Matched: matched, Shadow: ru.Mode == rule.Shadow,
			Reasons: reasons, Usage: numbers[ru.Name],
		}
	}
	return x, nil
}

// behind reports whether rule i, whose conditions hold and which is behind the
// verdict, matches, and why it does not decide.
func behind(p *plan.Plan, i int) (matched bool, reasons []string) {
	if slices.Contains(p.Matched, i) {
		return true, []string{"decides nothing: " + p.Rules.Rule(p.Verdict).Name + " decided before"}
	}
	last := p.Rules.Rule(p.Matched[len(p.Matched)-1]).Name
	return false, []string{"not reached: " + last + " decided before"}
}
