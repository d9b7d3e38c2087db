package rule

import (
	"slices"
	"strings"
)

// Not returns a test that holds for each value for which t does not. A missing
// attribute has the value "", so Not(Equal("a")) holds for it. To exclude missing
// attributes, combine Not with [Present] in [All].
func Not(t Test) Test { return not{t} }

type not struct{ test Test }

func (n not) Holds(value string) bool { return !n.test.Holds(value) }

func (n not) String() string {
	if _, several := n.test.(all); several {
		return "is not (" + wanted(n.test) + ")"
	}
	return "is not " + wanted(n.test)
}

// All returns a test that holds for each value for which all of tests hold.
func All(tests ...Test) Test { return all(slices.Clone(tests)) }

type all []Test

func (a all) Holds(value string) bool {
	for _, t := range a {
		if !t.Holds(value) {
			return false
		}
	}
	return true
}

func (a all) String() string {
	if len(a) == 0 {
		return "is anything"
	}
	parts := make([]string, len(a))
	for i, t := range a {
		parts[i] = wanted(t)
	}
	return "is " + strings.Join(parts, " and ")
}

// wanted returns the text of t without its verb: "one of [a]" of "is one of
// [a]".
func wanted(t Test) string { return strings.TrimPrefix(t.String(), "is ") }
