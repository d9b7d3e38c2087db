package rulefile

import (
	"slices"

	"github.com/weirhq/weir/rule"
)

// index finds rules by their conditions, so that the linter need not compare each rule
// with each other one.
type index struct {
	rules   []rule.Rule
	compare *comparison
	used    map[anchor]int // how many of the rules to add have the anchor
	by      map[anchor][]int
	rest    []int // rules without an anchor
}

// newIndex returns an index for those of rules that add reports. They are not yet in it.
func newIndex(rules []rule.Rule, compare *comparison, add func(i int) bool) *index {
	x := &index{rules: rules, compare: compare, used: map[anchor]int{}, by: map[anchor][]int{}}
	for i := range rules {
		if add(i) {
			for _, c := range rules[i].When {
				for _, a := range x.anchorsOf(c, c.Test) {
					x.used[a]++
				}
			}
		}
	}
	return x
}

// add adds rule i under the condition that the fewest rules share.
func (x *index) add(i int) {
	var rarest []anchor
	fewest := 0
	for _, c := range x.rules[i].When {
		list, most := x.anchorsOf(c, c.Test), 0
		for _, a := range list {
			most = max(most, x.used[a])
		}
		if len(list) > 0 && (rarest == nil || most < fewest) {
			rarest, fewest = list, most
		}
	}
	for _, a := range rarest {
		x.by[a] = append(x.by[a], i)
	}
	if rarest == nil {
		x.rest = append(x.rest, i)
	}
}

// anchor is a part of a condition that rules are found by: a value, or a prefix of values.
type anchor struct {
	attribute string
	trim      bool
	prefix    bool
	text      string
}

// anchorsOf returns the anchors of t, a test of c: the tests that imply t have one of them in
// their [passesOf]. It returns none for what is neither values nor a prefix.
func (x *index) anchorsOf(c rule.Condition, t rule.Test) (list []anchor) {
	values, _ := x.compare.valuesOf(t)
	for _, v := range values {
		list = append(list, anchor{c.Attribute, c.Trim, false, v})
	}
	form, arguments, parts := rule.FormOf(t)
	if form == "Prefix" && len(arguments[0]) <= longestValue {
		list = append(list, anchor{c.Attribute, c.Trim, true, arguments[0]})
	}
	for i := 0; i < len(parts) && form == "All" && list == nil; i++ {
		list = x.anchorsOf(c, parts[i])
	}
	return list
}

// passesOf returns the anchors that t, a test of c, can pass.
func (x *index) passesOf(c rule.Condition, t rule.Test) (list []anchor) {
	prefixes := func(text string) {
		for n := range min(len(text), longestValue) + 1 {
			list = append(list, anchor{c.Attribute, c.Trim, true, text[:n]})
		}
	}
	if values, ok := x.compare.valuesOf(t); ok && len(values) > 0 {
		list = append(list, anchor{c.Attribute, c.Trim, false, values[0]})
		prefixes(values[0])
		return list
	}
	switch form, arguments, parts := rule.FormOf(t); form {
	case "Prefix":
		prefixes(arguments[0])
	case "All":
		for _, part := range parts {
			list = append(list, x.passesOf(c, part)...)
		}
	}
	return list
}

// find returns the rules that were added and whose conditions r may imply, in their
// order. No other rule's conditions are implied by r. It returns none if there are more than steps left.
func (x *index) find(r *rule.Rule) []int {
	if x.compare.left <= 0 {
		return nil
	}
	found := slices.Clone(x.rest)
	for _, c := range r.When {
		for _, a := range x.passesOf(c, c.Test) {
			if len(found) >= x.compare.left {
				break
			}
			found = append(found, x.by[a]...)
		}
	}
	if !x.compare.spend(len(found)) {
		return nil
	}
	slices.Sort(found)
	return slices.Compact(found)
}
