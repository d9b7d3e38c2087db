package rulefile

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/rule"
)

// index finds rules by their conditions, so that the linter need not compare each rule
// with each other one.
type index struct {
	rules []rule.Rule
	used  map[anchor]int // how many of the rules to add have the anchor
	by    map[anchor][]int
	rest  []int // rules without an anchor
}

// newIndex returns an index for those of rules that add reports. They are not yet in it.
func newIndex(rules []rule.Rule, add func(i int) bool) *index {
	x := &index{rules: rules, used: map[anchor]int{}, by: map[anchor][]int{}}
	for i := range rules {
		if add(i) {
			for _, c := range rules[i].When {
				for _, a := range anchorsIn(c) {
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
		list, most := anchorsIn(c), 0
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

// anchorsIn returns the anchors of a condition.
func anchorsIn(c rule.Condition) []anchor {
	list := anchorsOf(c.Test)
	for k := range list {
		list[k].attribute, list[k].trim = c.Attribute, c.Trim
	}
	return list
}

// anchor is a part of a condition: what a request needs to pass it.
type anchor struct {
	attribute  string
	trim       bool
	form, text string // text is empty for the forms that only a value can pass
}

// anchorsOf returns the form and text of anchors of t: a test that is stricter than t has
// one of them in its [passesOf]. It returns nil if they are hard to find.
func anchorsOf(t rule.Test) (list []anchor) {
	switch form, arguments, parts := rule.FormOf(t); form {
	case "", "Present":
	case "Not": // any value can pass it, and so can what excludes one of its values
		if form, arguments, _ := rule.FormOf(parts[0]); form == "Equal" && len(arguments) > 0 {
			list = []anchor{{form: "value"}, {form: "excludes"}, {form: "Not", text: arguments[0]}}
		}
	case "All":
		for _, part := range parts {
			if list = anchorsOf(part); len(list) > 0 {
				return list
			}
		}
	case "Equal":
		for _, v := range arguments {
			list = append(list, anchor{form: form, text: v})
		}
	case "Absent":
		list = []anchor{{form: "Equal"}}
	case "Prefix", "Suffix":
		list = []anchor{{form: form, text: arguments[0]}}
	default:
		list = []anchor{{form: form, text: strings.Join(arguments, "\x00")}, {form: "value"}}
	}
	return list
}

// passesOf returns the form and text of the anchors that t can pass.
func passesOf(t rule.Test) (list []anchor) {
	text := func(prefix, suffix bool, v string) {
		for n := range len(v) + 1 {
			if prefix {
				list = append(list, anchor{form: "Prefix", text: v[:n]})
			}
			if suffix {
				list = append(list, anchor{form: "Suffix", text: v[n:]})
			}
		}
	}
	if values, ok := valuesOf(t); ok && len(values) > 0 {
		list = append(list, anchor{form: "Equal", text: values[0]}, anchor{form: "value"})
		text(true, true, values[0])
	}
	switch form, arguments, parts := rule.FormOf(t); form {
	case "", "Present", "Equal", "Absent":
	case "Not":
		if form, arguments, _ := rule.FormOf(parts[0]); form == "Equal" {
			for _, v := range arguments {
				list = append(list, anchor{form: "Not", text: v})
			}
			return list
		}
		list = append(list, anchor{form: "excludes"})
	case "All":
		for _, part := range parts {
			list = append(list, passesOf(part)...)
		}
	case "Prefix", "Suffix":
		text(form == "Prefix", form == "Suffix", arguments[0])
	default:
		list = append(list, anchor{form: form, text: strings.Join(arguments, "\x00")})
	}
	return list
}

// find returns the rules that were added and whose conditions r may imply, in their
// order. No other rule's conditions are implied by r.
func (x *index) find(r *rule.Rule) []int {
	found := slices.Clone(x.rest)
	for _, c := range r.When {
		for _, a := range passesOf(c.Test) {
			a.attribute, a.trim = c.Attribute, c.Trim
			found = append(found, x.by[a]...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
