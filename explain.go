package weir

import (
	"context"
	"slices"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// Explanation says how the rules see a request.
type Explanation struct {
	// Decision is what a check answers.
	Decision Decision
	// Rules are all the rules, in order.
	Rules []RuleExplanation
}

// RuleExplanation says how one rule sees a request.
type RuleExplanation struct {
	Rule    string
	Kind    rule.Kind
	Matched bool
	// Shadow says that the rule only watches.
	Shadow bool
	// Reasons say why the rule did not match, or was not reached, or, of one
	// that matched, why it does not decide.
	Reasons []string
	// Usage are the rule's numbers, where it matched and counts.
	Usage *Usage
}

// Explain says which rules match the request, which do not and why, and what
// would happen. It counts nothing.
func (e *Engine) Explain(ctx context.Context, r Request) (Explanation, error) {
	c := call{}
	var d Decision
	if err := c.run(ctx, e, store.Check, &r, &d); err != nil {
		return Explanation{}, err
	}
	x := Explanation{Decision: d, Rules: make([]RuleExplanation, c.rules.Len())}
	numbers := make(map[string]*Usage, len(d.Limits))
	for i := range d.Limits {
		numbers[d.Limits[i].Rule] = &d.Limits[i]
	}
	for i := range x.Rules {
		ru := c.rules.Rule(i)
		matched, reasons := c.rules.Why(i, c.values)
		if matched && c.verdict >= 0 && i > c.verdict {
			matched, reasons = c.behind(i)
		}
		x.Rules[i] = RuleExplanation{
			Rule: ru.Name, Kind: ru.Kind(), Matched: matched, Shadow: ru.Mode == rule.Shadow,
			Reasons: reasons, Usage: numbers[ru.Name],
		}
	}
	return x, nil
}

// behind says what becomes of rule i, whose conditions hold, behind a verdict.
func (c *call) behind(i int) (matched bool, reasons []string) {
	verdict := c.rules.Rule(c.verdict).Name
	if slices.Contains(c.matched, i) {
		return true, []string{"decides nothing: " + verdict + " decided before"}
	}
	last := c.rules.Rule(c.matched[len(c.matched)-1]).Name
	return false, []string{"not reached: " + last + " decided before"}
}
