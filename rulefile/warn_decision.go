package rulefile

import (
	"slices"

	"github.com/weirhq/weir/rule"
)

// decisions warns of tests of attributes that are named and valued like parts of a
// decision, such as outcome: deny. No decision is in a request.
func (l *linter) decisions(i int, when *node) {
	if when == nil {
		return
	}
	for _, e := range when.entries {
		values := []*node{e.value}
		if e.value.kind == aList {
			values = e.value.items
		}
		for _, v := range values {
			if v.isScalar() && l.isDecided(e.key.text, v.text) {
				l.warn(i, "decision-attribute", v, "%s: %s tests an attribute of the request: a rule does not see what other rules decide", e.key.text, v.text)
			}
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
		return slices.ContainsFunc(l.rules, func(r rule.Rule) bool { return r.Name == value })
	}
	return false
}
