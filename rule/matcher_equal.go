package rule

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/weirhq/weir/internal/ruleset"
)

// Equal returns a test that holds for a value that is one of values, byte for
// byte. A [Set] has an index of the rules with such tests.
func Equal(values ...string) Test {
	e := equal{values: append([]string{}, values...)}
	if len(values) > scan {
		e.set = make(map[string]struct{}, len(values))
		for _, v := range values {
			e.set[v] = struct{}{}
		}
	}
	return e
}

// scan is the number of values up to which they are compared one by one. A map
// is faster for more.
const scan = 8

type equal struct {
	values []string
	set    map[string]struct{} // nil for few values
}

func (e equal) Holds(value string) bool {
	if e.set != nil {
		_, ok := e.set[value]
		return ok
	}
	return slices.Contains(e.values, value)
}

func (e equal) String() string {
	if len(e.values) == 1 {
		return "is " + word(e.values[0])
	}
	return "is one of " + listed(e.values)
}

// word returns a value as it is, or in quotation marks if it could be read as more than a value.
func word(value string) string {
	switch value {
	case "", "anything", "missing", "not", "present": // as in the texts of other tests
		return ruleset.Quoted(value)
	}
	for _, r := range value {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@+", r) {
			return ruleset.Quoted(value)
		}
	}
	return value
}

// listed returns words in brackets, and only the first ten when there are more.
func listed(words []string) string {
	const most = 10
	if more := len(words) - most; more > 0 {
		return fmt.Sprintf("[%s and %d more]", strings.Join(words[:most], " "), more)
	}
	return "[" + strings.Join(words, " ") + "]"
}
