package rulefile

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/rule"
)

// dead warns of rules after verdicts that match all their requests.
func (l *linter) dead() {
	verdicts := newIndex(l.rules, func(i int) bool { return l.rules[i].Kind() == rule.KindVerdict && l.rules[i].Mode != rule.Off })
	for j := range l.rules {
		r := &l.rules[j]
		if r.Mode == rule.Off {
			continue
		}
		for _, i := range l.candidates(verdicts, r) {
			if implies(r, l.rules[i].When) {
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
		values, ok := valuesOf(c.Test)
		if !ok {
			continue
		}
		if slices.ContainsFunc(values, func(v string) bool { return v != "" || !needs(r, c.Attribute) }) {
			continue
		}
		why := ""
		if needs(r, c.Attribute) {
			why = ", and the rule needs one for what it counts"
		}
		at := l.nodes[i].get("when").entries[n].value
		l.warn(i, "never-matches", at, "the rule never matches: no value of %s passes all its tests%s", c.Attribute, why)
		return
	}
}

// needs reports whether requests without the attribute cannot match r because
// of its key or its measure.
func needs(r *rule.Rule, attribute string) bool {
	return r.Of == attribute || slices.Contains(r.Per, attribute)
}

// valuesOf returns the only values for which t can hold, if they are few.
func valuesOf(t rule.Test) (values []string, ok bool) {
	switch function, arguments, parts := rule.FormOf(t); function {
	case "Equal":
		return arguments, true
	case "Absent":
		return []string{""}, true
	case "All":
		for _, part := range parts {
			if values, ok := valuesOf(part); ok {
				return slices.DeleteFunc(values, func(v string) bool { return !t.Holds(v) }), true
			}
		}
	}
	return nil, false
}

// implies reports whether every request that r matches passes conditions. It may report false
// if that is hard to decide.
func implies(r *rule.Rule, conditions []rule.Condition) bool {
	return !slices.ContainsFunc(conditions, func(c rule.Condition) bool { return !impliesOne(r, c) })
}

func impliesOne(r *rule.Rule, c rule.Condition) bool {
	trims := slices.ContainsFunc(r.When, func(o rule.Condition) bool { return o.Attribute == c.Attribute && o.Trim })
	if needs(r, c.Attribute) && trims == c.Trim && stricter(rule.Present(), c.Test) {
		return true
	}
	return slices.ContainsFunc(r.When, func(o rule.Condition) bool {
		return o.Attribute == c.Attribute && o.Trim == c.Trim && stricter(o.Test, c.Test)
	})
}

// stricter reports whether b holds for every value for which a holds. It may report false if
// that is hard to decide.
func stricter(a, b rule.Test) bool {
	if same(a, b) {
		return true
	}
	if values, ok := valuesOf(a); ok {
		return len(values) > 0 && !slices.ContainsFunc(values, func(v string) bool { return !b.Holds(v) })
	}
	fa, argumentsA, partsA := rule.FormOf(a)
	fb, argumentsB, partsB := rule.FormOf(b)
	if fa == "" || fb == "" {
		return false
	}
	switch {
	case fb == "All":
		return !slices.ContainsFunc(partsB, func(part rule.Test) bool { return !stricter(a, part) })
	case fa == "All":
		return slices.ContainsFunc(partsA, func(part rule.Test) bool { return stricter(part, b) })
	case fb == "Present":
		return !a.Holds("") && fa != "Not"
	case fb == "Not" && fa == "Not":
		return stricter(partsB[0], partsA[0])
	case fb == "Not" && same(partsB[0], rule.Absent()):
		return stricter(a, rule.Present())
	case fa == "Prefix" && fb == "Prefix":
		return strings.HasPrefix(argumentsA[0], argumentsB[0])
	case fa == "Suffix" && fb == "Suffix":
		return strings.HasSuffix(argumentsA[0], argumentsB[0])
	}
	return false
}

// same reports whether a and b were made in the same way.
func same(a, b rule.Test) bool {
	fa, argumentsA, partsA := rule.FormOf(a)
	fb, argumentsB, partsB := rule.FormOf(b)
	return fa != "" && fa == fb && slices.Equal(argumentsA, argumentsB) && slices.EqualFunc(partsA, partsB, same)
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
