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

// near is the one of known that word is most likely a slip of, empty when it
// is like none of them.
func near(word string, known []string) string {
	nearest, least := "", min(len(word)/3, 2)+2
	for _, k := range known {
		if d := distance(word, k); d < least {
			nearest, least = k, d
		}
	}
	return nearest
}

// distance is how many letters must be added, dropped or replaced to make b
// of a (Levenshtein's distance).
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances from a's start to b's starts
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
