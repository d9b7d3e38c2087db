package rulefile

import (
	"slices"

	"github.com/weirhq/weir/rule"
)

// Keys returns the keys that the parser accepts, by where the schema has them.
func Keys() map[string][]string {
	var windows []string
	for _, k := range windowKeys {
		windows = append(append(windows, k.kind.String()), k.others...)
	}
	return map[string][]string{
		"":                                  fileKeys,
		"definitions/rule":                  ruleKeys,
		"definitions/rule/properties/after": afterKeys,
		"definitions/ban":                   banKeys,
		"definitions/matcher":               matcherKeys,
		"definitions/list":                  listKeys,
		"definitions/outcome":               outcomeKeys,
		"definitions/window":                windows,
		"definitions/quotas":                {"by", "else"},
	}
}

// Stricter reports whether the linter takes b to hold for every value for which a holds.
func Stricter(a, b rule.Test) bool { return newComparison().stricter(a, b) }

// NotFound returns a pair of rules of which the first implies the conditions of the second,
// although the index of the linter does not find that, or false.
func NotFound(set *rule.Set) (pair [2]int, missed bool) {
	var rules []rule.Rule
	for i := range set.Len() {
		rules = append(rules, *set.Rule(i))
	}
	compare := newComparison()
	x := newIndex(rules, compare, func(int) bool { return true })
	for i := range rules {
		x.add(i)
	}
	for i := range rules {
		found := x.find(&rules[i])
		for j := range rules {
			if compare.implies(&rules[i], rules[j].When) && !slices.Contains(found, j) {
				return [2]int{i, j}, true
			}
		}
	}
	return pair, false
}
