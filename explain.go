package weir

import (
	"context"
	"slices"

	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
)

// Explanation shows how the rules apply to a request.
type Explanation struct {
	// Decision is the answer of a check.
	Decision Decision
	// Rules has an entry for each rule in force, in the order of the rules.
	Rules []RuleExplanation
}

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
	// reached. For a rule that matched behind a verdict, it holds why the rule
	// decides nothing. Otherwise it is empty.
	Reasons []string
	// Usage holds the rule's numbers. It is nil if the rule did not match or is
	// a verdict, and if an outage policy decided without numbers.
	Usage *Usage
}

// Explain returns the answer of [Engine.Check], and for each rule whether it
// matches the request or why not. It counts nothing.
func (e *Engine) Explain(ctx context.Context, r Request) (Explanation, error) {
	rules, err := e.ready()
	if err != nil {
		return Explanation{}, err
	}
	c := call{}
	if err := c.plan(rules, &e.seals, Check, &r, nil); err != nil {
		return Explanation{}, err
	}
	if err := c.run(ctx, &e.driver, nil); err != nil {
		return Explanation{}, err
	}
	x := Explanation{Rules: make([]RuleExplanation, rules.Len())}
	v := verdictOf(&c.request, &c.now)
	v.write(&x.Decision)
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
