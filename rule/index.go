package rule

import (
	"maps"
	"slices"
)

// index finds the rules that a request can match at all.
type index struct {
	others []int32 // rules without an equality condition
	probes []probe
	needs  []needs // by rule
}

// probe finds the rules with an equality condition on one attribute.
type probe struct {
	part
	rules map[string][]int32 // by the value, ascending
	empty bool               // one of the values is ""

	// few has the same as rules when there are few values: comparing those is
	// four times as fast as hashing the request's.
	few []fewRules
}

// fewRules are the rules of one value.
type fewRules struct {
	value string
	rules []int32
}

// fewValues is the most values that are compared one by one.
const fewValues = 6

// of returns the rules of a value.
func (p *probe) of(value string) []int32 {
	if p.few == nil {
		return p.rules[value]
	}
	for i := range p.few {
		if f := &p.few[i]; f.value == value {
			return f.rules
		}
	}
	return nil
}

// close is called when all rules were added.
func (p *probe) close() {
	if len(p.rules) <= fewValues {
		for _, value := range slices.Sorted(maps.Keys(p.rules)) {
			p.few = append(p.few, fewRules{value, p.rules[value]})
		}
	}
}

// asked is a value that some rule compares an attribute with.
type asked struct {
	part
	value string
}

// newIndex puts each rule under one of its equality conditions: the one whose
// values the fewest rules have. Of "action: post" and "user: ann" that is
// usually the second.
func newIndex(rules []compiled) index {
	popular := make(map[asked]int)
	for i := range rules {
		if rules[i].Mode == Off {
			continue
		}
		for _, w := range rules[i].when {
			for _, v := range equals(w.test) {
				popular[asked{w.part, v}]++
			}
		}
	}
	x := index{needs: make([]needs, len(rules))}
	at := make(map[part]int)
	for i := range rules {
		if rules[i].Mode == Off {
			continue
		}
		r := &rules[i]
		best := selective(r.when, popular)
		if best < 0 {
			x.needs[i] = needsOf(r, -1)
			x.others = append(x.others, int32(i))
			continue
		}
		w := r.when[best]
		if _, ok := w.test.(equal); ok {
			x.needs[i] = needsOf(r, best)
		} else {
			x.needs[i] = needsOf(r, -1)
		}
		n, ok := at[w.part]
		if !ok {
			n, at[w.part] = len(x.probes), len(x.probes)
			x.probes = append(x.probes, probe{part: w.part, rules: make(map[string][]int32)})
		}
		x.probes[n].add(int32(i), equals(w.test))
	}
	for i := range x.probes {
		x.probes[i].close()
	}
	return x
}

// add adds a rule under each of values.
func (p *probe) add(rule int32, values []string) {
	for _, v := range values {
		p.empty = p.empty || v == ""
		list := p.rules[v]
		if len(list) == 0 || list[len(list)-1] != rule { // a value may be listed twice
			p.rules[v] = append(list, rule)
		}
	}
}

// selective returns the index of the equality condition whose most popular
// value is the least popular, or -1 when no condition is one of equality.
func selective(when []condition, popular map[asked]int) int {
	best, least := -1, 0
	for i, w := range when {
		values := equals(w.test)
		if values == nil {
			continue
		}
		most := 0
		for _, v := range values {
			most = max(most, popular[asked{w.part, v}])
		}
		if best < 0 || most < least {
			best, least = i, most
		}
	}
	return best
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
