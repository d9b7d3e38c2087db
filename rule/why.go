package rule

import (
	"fmt"
)

// Why reports whether rule i matches values, regardless of the verdicts before it.
// If it does not match, reasons has a readable text for each cause: a condition
// that fails, a missing attribute, a value without a quota, or the mode [Off].
func (s *Set) Why(i int, values []string) (matched bool, reasons []string) {
	c := &s.rules[i]
	if c.Mode == Off {
		reasons = append(reasons, "mode is off")
	}
	missing := make(map[string]bool) // attributes that a reason names already
	lacks := func(name string) {
		if !missing[name] {
			missing[name] = true
			reasons = append(reasons, name+" is missing")
		}
	}
	for n, w := range c.when {
		name, v := c.When[n].Attribute, w.value(values)
		switch {
		case w.test.Holds(v):
		case v != "":
			reasons = append(reasons, fmt.Sprintf("%s is %s, want %s", name, quoted(v), wanted(w.test)))
		case w.test == Present():
			lacks(name)
		default:
			missing[name] = true
			reasons = append(reasons, fmt.Sprintf("%s is missing, want %s", name, wanted(w.test)))
		}
	}
	for n, p := range c.per {
		if p.value(values) == "" {
			lacks(c.Per[n])
		}
	}
	if c.of.at >= 0 && c.of.value(values) == "" {
		lacks(c.Of)
	}
	if c.by.at >= 0 && c.limitOf(values) == nil {
		if v := c.by.value(values); v == "" {
			lacks(c.Quota.By)
		} else {
			reasons = append(reasons, fmt.Sprintf("%s is %s, want %s", c.Quota.By, quoted(v), wanted(Equal(c.Quota.caseNames()...))))
		}
	}
	return len(reasons) == 0, reasons
}
