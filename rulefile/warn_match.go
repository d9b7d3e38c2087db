package rulefile

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/rule"
)

// dead warns of rules after verdicts that match all their requests.
func (l *linter) dead() {
	verdicts := newIndex(l.rules, l.compare, func(i int) bool { return l.rules[i].Kind() == rule.KindVerdict && l.rules[i].Mode != rule.Off })
	for j := range l.rules {
		r := &l.rules[j]
		if r.Mode == rule.Off {
			continue
		}
		for _, i := range verdicts.find(r) {
			if l.compare.implies(r, l.rules[i].When) {
				l.never[j] = true
				l.warn(j, "dead-rule", l.nodes[j], "the rule never applies: %q before it matches the same requests and ends the evaluation", l.rules[i].Name)
				break
			}
		}
		if r.Kind() != rule.KindVerdict || r.Mode != rule.Enforce || r.CountRest {
			continue
		}
		if after := len(l.rules) - 1 - j; len(r.When) == 0 && after > 0 {
			for k := range after {
				l.never[j+1+k] = true
			}
			l.warn(j, "dead-rule", l.nodes[j], "the rule matches every request: the rules after it (%d) never apply", after)
			return
		}
		verdicts.add(j)
	}
}

// contradiction warns of a rule whose conditions cannot hold together.
func (l *linter) contradiction(i int) {
	r := &l.rules[i]
	for n, c := range r.When {
		values, ok := l.compare.valuesOf(c.Test)
		if !ok {
			continue
		}
		if slices.ContainsFunc(values, func(v string) bool { return v != "" || !l.compare.needs(r, c.Attribute) }) {
			continue
		}
		why := ""
		if l.compare.needs(r, c.Attribute) {
			why = ", and the rule needs one for what it counts"
		}
		at := l.nodes[i].get("when").entries[n].value
		l.warn(i, "never-matches", at, "the rule never matches: no value of %s passes all its tests%s", c.Attribute, why)
		return
	}
}

// mostSteps is the maximum number of steps in which the linter compares the rules of a file with each other. Otherwise
// the time would grow with the square of the size of the file. All pairs of 500 usual rules take fewer steps.
const mostSteps = 5_000_000

// longestValue is the maximum size of values and prefixes that are compared with those of other tests, in bytes.
const longestValue = 1024

// comparison compares conditions, in at most [mostSteps]. Without steps left it finds nothing.
type comparison struct {
	left  int            // steps
	sizes map[string]int // of regular expressions; see patternSize
}

func newComparison() *comparison { return &comparison{left: mostSteps, sizes: map[string]int{}} }

// spend takes n steps, and reports whether they were left.
func (c *comparison) spend(n int) bool {
	c.left -= n
	return c.left > 0
}

// needs reports whether requests without the attribute cannot match r because
// of its key or its measure.
func (c *comparison) needs(r *rule.Rule, attribute string) bool {
	return c.spend(len(r.Per)/16) && (r.Of == attribute || slices.Contains(r.Per, attribute))
}

// valuesOf returns the only values for which t can hold, if they are few and short.
func (c *comparison) valuesOf(t rule.Test) (values []string, ok bool) {
	function, arguments, parts := rule.FormOf(t)
	return c.valuesOfForm(t, function, arguments, parts)
}

func (c *comparison) valuesOfForm(t rule.Test, function string, arguments []string, parts []rule.Test) (values []string, ok bool) {
	if !c.spend(len(arguments) + len(parts)) {
		return nil, false
	}
	switch function {
	case "Equal":
		if !slices.ContainsFunc(arguments, func(v string) bool { return len(v) > longestValue }) {
			return arguments, true
		}
	case "Absent":
		return []string{""}, true
	case "All":
		for _, part := range parts {
			if values, ok := c.valuesOf(part); ok {
				return c.passing(t, values), c.left > 0
			}
		}
	}
	return nil, false
}

// passing returns those of values for which t holds, or none without steps left.
func (c *comparison) passing(t rule.Test, values []string) (list []string) {
	size := c.size(t)
	for _, v := range values {
		if !c.spend(size * (1 + len(v)/32)) {
			return nil
		}
		if t.Holds(v) {
			list = append(list, v)
		}
	}
	return list
}

// size returns how many steps it takes about to find out whether t holds for a short value.
func (c *comparison) size(t rule.Test) int {
	function, arguments, parts := rule.FormOf(t)
	size := 1
	switch function {
	case "Address", "LooseAddress":
		size += len(arguments)
	case "Pattern":
		n, known := c.sizes[arguments[0]]
		if !known {
			n = patternSize(arguments[0])
			c.sizes[arguments[0]] = n
		}
		size += n
	}
	for _, part := range parts {
		size += c.size(part)
	}
	return size
}

// implies reports whether every request that r matches passes conditions. It may report false
// if that is hard to decide.
func (c *comparison) implies(r *rule.Rule, conditions []rule.Condition) bool {
	return !slices.ContainsFunc(conditions, func(o rule.Condition) bool { return !c.impliesOne(r, o) })
}

func (c *comparison) impliesOne(r *rule.Rule, to rule.Condition) bool {
	if !c.spend(1 + len(r.When)/8) {
		return false
	}
	trims := slices.ContainsFunc(r.When, func(o rule.Condition) bool { return o.Attribute == to.Attribute && o.Trim })
	if trims == to.Trim && c.needs(r, to.Attribute) && c.stricter(rule.Present(), to.Test) {
		return true
	}
	return slices.ContainsFunc(r.When, func(o rule.Condition) bool {
		return o.Attribute == to.Attribute && o.Trim == to.Trim && c.stricter(o.Test, to.Test)
	})
}

// stricter reports whether b holds for every value for which a holds. It may report false if
// that is hard to decide.
func (c *comparison) stricter(a, b rule.Test) bool {
	if !c.spend(1) { // before FormOf copies what the tests consist of
		return false
	}
	fa, argumentsA, partsA := rule.FormOf(a)
	fb, argumentsB, partsB := rule.FormOf(b)
	if !c.spend(len(argumentsA) + len(argumentsB) + len(partsA) + len(partsB)) {
		return false
	}
	if c.sameForm(fa, fb, argumentsA, argumentsB, partsA, partsB) {
		return true
	}
	if values, ok := c.valuesOfForm(a, fa, argumentsA, partsA); ok {
		return len(values) > 0 && len(c.passing(b, values)) == len(values)
	}
	if fa == "" || fb == "" {
		return false
	}
	switch {
	case fb == "All":
		return !slices.ContainsFunc(partsB, func(part rule.Test) bool { return !c.stricter(a, part) })
	case fa == "All":
		return slices.ContainsFunc(partsA, func(part rule.Test) bool { return c.stricter(part, b) })
	case fb == "Present":
		return fa != "Not" && len(c.passing(a, []string{""})) == 0 && c.left > 0
	case fb == "Not" && fa == "Not":
		return c.stricter(partsB[0], partsA[0])
	case fb == "Not" && c.same(partsB[0], rule.Absent()):
		return c.stricter(a, rule.Present())
	case fa == "Prefix" && fb == "Prefix":
		return len(argumentsB[0]) <= longestValue && strings.HasPrefix(argumentsA[0], argumentsB[0])
	case fa == "Suffix" && fb == "Suffix":
		return strings.HasSuffix(argumentsA[0], argumentsB[0])
	}
	return false
}

// same reports whether a and b were made in the same way.
func (c *comparison) same(a, b rule.Test) bool {
	if !c.spend(1) {
		return false
	}
	fa, argumentsA, partsA := rule.FormOf(a)
	fb, argumentsB, partsB := rule.FormOf(b)
	return c.spend(len(argumentsA)+len(argumentsB)+len(partsA)+len(partsB)) && c.sameForm(fa, fb, argumentsA, argumentsB, partsA, partsB)
}

func (c *comparison) sameForm(fa, fb string, argumentsA, argumentsB []string, partsA, partsB []rule.Test) bool {
	return fa != "" && fa == fb && slices.Equal(argumentsA, argumentsB) && slices.EqualFunc(partsA, partsB, c.same)
}

// decisions warns of a test of an attribute that is named and valued like a part of
// a decision, such as outcome: deny. No decision is in a request.
func (l *linter) decisions(i int, e entry) {
	for _, v := range scalars(e.value) {
		if v.isScalar() && l.isDecided(e.key.text, v.text) {
			l.warn(i, "decision-attribute", v, "%s: %s tests an attribute of the request: a rule does not see what other rules decide", e.key.text, v.text)
		}
	}
}

// isDecided reports whether a decision has value under name.
func (l *linter) isDecided(name, value string) bool {
	switch name {
	case "allowed":
		return value == "true" || value == "false"
	case "outcome":
		_, defined := l.pass.outcomes[value]
		return defined || value == rule.Allow || value == rule.Deny
	case "rule":
		return l.named[value]
	}
	return false
}
