package rule

import (
	"fmt"
	"strings"
)

// Fault is one thing that is wrong with what [New] was given.
type Fault struct {
	// Rule is the index of the rule, -1 where the fault is in none, and Name
	// the rule's name as given.
	Rule int
	Name string

	// Field is where in the rule, as a path in a rules file: "limit",
	// "limit.pro", "per", "when.ip", "after.window", "sum", … Of a fault in no
	// rule it starts at the top: "outcomes.captcha.status".
	Field string

	// Problem is what is wrong and what was expected.
	Problem string
}

func (f Fault) String() string {
	place := f.Field + ": " + f.Problem
	switch {
	case f.Rule < 0:
		return place
	case f.Name == "":
		return fmt.Sprintf("rule %d: %s", f.Rule+1, place)
	}
	return fmt.Sprintf("rule %q: %s", f.Name, place)
}

// Faults are everything that is wrong, in the order of the rules.
type Faults []Fault

// Error is a line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}
