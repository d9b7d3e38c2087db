package ruleset

import (
	"fmt"
	"strings"
)

// Why reports whether rule i matches values, regardless of the verdicts before it.
// If it does not match, reasons has a readable text for each cause: a condition
// that fails, a missing attribute, a value without a quota, or that the rule is off.
func (s *Compiled) Why(i int, values []string) (matched bool, reasons []string) {
	c := &s.rules[i]
	if c.Off {
		reasons = append(reasons, "mode is off")
	}
	missing := make(map[string]bool) // attributes that a reason names already
	lacks := func(name string) {
		if !missing[name] {
			missing[name] = true
			reasons = append(reasons, name+" is missing")
		}
	}
	for _, w := range c.when {
		name, v := w.Attribute, w.value(values)
		switch {
		case w.Test.Holds(v):
		case v != "":
			reasons = append(reasons, fmt.Sprintf("%s is %s, want %s", name, Quoted(v), Wanted(w.Test)))
		case w.Presence:
			lacks(name)
		default:
			missing[name] = true
			reasons = append(reasons, fmt.Sprintf("%s is missing, want %s", name, Wanted(w.Test)))
		}
	}
	for n, p := range c.per {
		if p.value(values) == "" {
			lacks(c.Per[n].Attribute)
		}
	}
	if c.of.at >= 0 && c.of.value(values) == "" {
		lacks(c.Of)
	}
	if !c.hasLimit(values) {
		if v := c.by.value(values); v == "" {
			lacks(c.By)
		} else {
			reasons = append(reasons, fmt.Sprintf("%s is %s, want %s", c.By, Quoted(v), Wanted(c.Known)))
		}
	}
	return len(reasons) == 0, reasons
}

// Wanted returns the text of t without its verb: "one of [a b]" of "is one of [a b]".
func Wanted(t Test) string { return strings.TrimPrefix(t.String(), "is ") }
