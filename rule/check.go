package rule

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// validName is what rules and outcomes may be called: safe in keys, metrics, headers.
var validName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}$`)

const wantName = "want letters, digits, dots, dashes and underscores, a letter or digit first, up to 100"

// check finds everything that is wrong with rules and outcomes.
func check(rules []Rule, outcomes map[string]Outcome) Faults {
	var faults Faults
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

func checkOutcome(outcome string, o *Outcome) (faults Faults) {
	fault := func(field, format string, args ...any) {
		faults = append(faults, Fault{Rule: -1, Field: "outcomes." + outcome + field, Problem: fmt.Sprintf(format, args...)})
	}
	switch {
	case outcome == Allow || outcome == Deny:
		fault("", "%s has its meaning already, choose another name", outcome)
	case !validName.MatchString(outcome):
		fault("", "%s is not a name, %s", quoted(outcome), wantName)
	}
	switch {
	case o.Status != 0 && (o.Status < 100 || o.Status > 599):
		fault(".status", "%d is not an HTTP status, want 100 to 599", o.Status)
	case o.Allow && o.Status >= 400:
		fault(".status", "%d denies, and the outcome allows: want less than 400", o.Status)
	}
	if len(o.Body) > 0 && !json.Valid(o.Body) {
		fault(".body", "is not JSON")
	}
	return faults
}

// checker gathers the faults of one rule.
type checker struct {
	*Rule
	index    int
	outcomes map[string]Outcome
	known    []string // names that then may have
	faults   Faults
}

func (c *checker) fault(field, format string, args ...any) {
	c.faults = append(c.faults, Fault{c.index, c.Name, field, fmt.Sprintf(format, args...)})
}

func (c *checker) checkName(first map[string]int) {
	if c.Name == "" {
		c.fault("name", "is missing")
		return
	}
	if !validName.MatchString(c.Name) {
		c.fault("name", "%s is not a name, %s", quoted(c.Name), wantName)
	}
	if i, taken := first[c.Name]; taken {
		c.fault("name", "rule %d has this name too, and names keep counters apart", i+1)
	} else {
		first[c.Name] = c.index
	}
}

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

// impossible says why t can never hold, nothing where it can.
func impossible(t Test) string {
	switch t := t.(type) {
	case equal:
		if len(t.values) == 0 {
			return "lists no value"
		}
	case within:
		if t.empty() {
			return "no number is " + strings.TrimPrefix(wanted(t), "a number ")
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

func (c *checker) checkPer() {
	for i, name := range c.Per {
		if name == "" {
			c.fault("per", "names no attribute")
		} else if slices.Index(c.Per, name) < i {
			c.fault("per", "%q is there twice", name)
		}
	}
	// One key must not be kept in two places.
	if c.Together != "" && !slices.Contains(c.Per, c.Together) {
		c.fault("together", "%q is not in per: want one of its attributes", c.Together)
	}
}
