package rule

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/ruleset"
)

// Not returns a test that holds for each value for which t does not. A missing
// attribute has the value "", so Not(Equal("a")) holds for it. To exclude missing
// attributes, combine Not with [Present] in [All].
func Not(t Test) Test { return not{t} }

type not struct{ test Test }

func (n not) Holds(value string) bool { return !n.test.Holds(value) }

func (n not) String() string {
	if _, several := n.test.(all); several {
		return "is not (" + ruleset.Wanted(n.test) + ")"
	}
	return "is not " + ruleset.Wanted(n.test)
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
		parts[i] = ruleset.Wanted(t)
	}
	return "is " + strings.Join(parts, " and ")
}

// equals returns the only values for which t can hold, or nil when t is not a
// test of equality.
func equals(t Test) []string {
	switch t := t.(type) {
	case equal:
		return t.values
	case all:
		var fewest []string
		for _, part := range t {
			if values := equals(part); values != nil && (fewest == nil || len(values) < len(fewest)) {
				fewest = values
			}
		}
		return fewest
	}
	return nil
}
