package rule

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/ruleset"
)

// validName reports whether name is one that rules and outcomes may have. They are safe
// in keys, metrics and headers.
func validName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return name != "" && len(name) <= 100
}

const wantName = "want ASCII letters, digits, dots, dashes and underscores, a letter or digit first, up to 100"

// check returns everything that is wrong with outcomes, by name, and with
// rules, in order.
func check(rules []Rule, outcomes map[string]Outcome) fault.List {
	var faults fault.List
	for _, n := range slices.Sorted(maps.Keys(outcomes)) {
		o := outcomes[n]
		faults = append(faults, checkOutcome(n, &o)...)
	}
	known := append([]string{Allow, Deny}, slices.Sorted(maps.Keys(outcomes))...)
	first := make(map[string]int, len(rules))
	for i := range rules {
		c := checker{Rule: &rules[i], index: i, outcomes: outcomes, known: known}
		c.checkName(first)
		c.checkWhen()
		c.checkPer()
		c.checkMeasure()
		c.checkEffect()
		if c.Kind() == KindVerdict {
			c.checkVerdict()
		} else {
			c.checkWindow()
		}
		faults = append(faults, c.faults...)
	}
	return faults
}

// checkOutcome returns everything that is wrong with o, whose name is outcome.
func checkOutcome(outcome string, o *Outcome) (faults fault.List) {
	add := func(field, format string, args ...any) {
		faults.Addf("outcomes."+outcome+field, format, args...)
	}
	switch {
	case outcome == Allow || outcome == Deny:
		add("", "%s has its meaning already, choose another name", outcome)
	case !validName(outcome):
		add("", "%s is not a name, %s", ruleset.Quoted(outcome), wantName)
	}
	if err := ruleset.CheckStatus(o.Allow, o.Status); err != nil && o.Status != 0 {
		add(".status", "%v", err)
	}
	if len(o.Body) > 0 && !json.Valid(o.Body) {
		add(".body", "is not JSON")
	}
	return faults
}

// checker collects the faults of one rule.
type checker struct {
	*Rule
	index    int
	outcomes map[string]Outcome
	known    []string // outcomes that then may name
	faults   fault.List
}

// fault adds a fault of a field of the rule.
func (c *checker) fault(field, format string, args ...any) {
	f := fault.Newf(field, format, args...).In(fmt.Sprintf("rules[%d]", c.index))
	f.Rule = c.Name
	c.faults = append(c.faults, f)
}

// checkName checks the rule's name. first holds the index of the first rule of
// each name.
func (c *checker) checkName(first map[string]int) {
	if c.Name == "" {
		c.fault("name", "is missing")
		return
	}
	if !validName(c.Name) {
		c.fault("name", "%s is not a name, %s", ruleset.Quoted(c.Name), wantName)
	}
	if i, taken := first[c.Name]; taken {
		c.fault("name", "rule %d has this name too, and names keep counters apart", i+1)
	} else {
		first[c.Name] = c.index
	}
}

// checkWhen checks the conditions.
func (c *checker) checkWhen() {
	for _, w := range c.When {
		field := "when." + w.Attribute
		if w.Attribute == "" {
			c.fault("when", "names no attribute")
		}
		if w.Test == nil {
			c.fault(field, "has no test")
		} else if problem := impossible(w.Test); problem != "" {
			c.fault(field, "%s, so that the rule could never match", problem)
		}
	}
}

// impossible returns the reason why t can never hold, or "" when it can.
func impossible(t Test) string {
	switch t := t.(type) {
	case equal:
		if len(t.values) == 0 {
			return "lists no value"
		}
	case within:
		if t.empty() {
			return "no number is " + strings.TrimPrefix(ruleset.Wanted(t), "a number ")
		}
	case all:
		for _, part := range t {
			if problem := impossible(part); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// checkPer checks the attributes of the key.
func (c *checker) checkPer() {
	named := make(map[string]bool, len(c.Per))
	for _, name := range c.Per {
		if name == "" {
			c.fault("per", "names no attribute")
		} else if named[name] {
			c.fault("per", "%q is there twice", name)
		}
		named[name] = true
	}
	// A key must not be in two places.
	for _, name := range slices.Sorted(maps.Keys(c.Networks)) {
		problem := c.Networks[name].check()
		if !named[name] {
			problem = "has a network and is not in per"
		}
		if problem != "" {
			c.fault("per", "%q %s", name, problem)
		}
	}
	if c.Together != "" && !named[c.Together] {
		c.fault("together", "%q is not in per: want one of its attributes", c.Together)
	}
}
