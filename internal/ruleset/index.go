package ruleset

import (
	"maps"
	"slices"
)

// index finds the rules that a request can match at all.
type index struct {
	others list // rules without an equality condition
	probes []probe
	needs  []needs // by rule
}

// list is rules that the index finds together.
type list struct {
	rules []int32 // ascending

	// alike reports whether a request that the index finds the rules for matches all
	// of them or none, as it has the value at or not. Most rules need nothing else: they
	// are for one value, and per one attribute.
	alike bool
	at    int
}

// probe finds the rules with an equality condition on one attribute.
type probe struct {
	part
	rules map[string]*list // by the value
	empty bool             // one of the values is ""

	// few has the same as rules when there are few values: comparing those is
	// four times as fast as hashing the request's.
	few []fewRules
}

// fewRules are the rules of one value.
type fewRules struct {
	value string
	list  list
}

// fewValues is the most values that are compared one by one.
const fewValues = 6

// of returns the rules of a value, or nil.
func (p *probe) of(value string) *list {
	if p.few == nil {
		return p.rules[value]
	}
	for i := range p.few {
		if f := &p.few[i]; f.value == value {
			return &f.list
		}
	}
	return nil
}

// close is called when all rules were added.
func (l *list) close(all []needs) {
	l.alike = len(l.rules) > 0
	for k, i := range l.rules {
		n := &all[i]
		if len(n.tests) > 0 || n.rare != nil || len(n.parts) != 1 || n.parts[0].trim || n.ends {
			l.alike = false
			return
		}
		at := n.parts[0].at
		l.alike = l.alike && (k == 0 || at == l.at)
		l.at = at
	}
}

// close is called when all rules were added.
func (p *probe) close(needs []needs) {
	for _, l := range p.rules {
		l.close(needs)
	}
	if len(p.rules) <= fewValues {
		for _, value := range slices.Sorted(maps.Keys(p.rules)) {
			p.few = append(p.few, fewRules{value, *p.rules[value]})
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
		if rules[i].Off {
			continue
		}
		for _, w := range rules[i].when {
			for _, v := range w.Values {
				popular[asked{w.part, v}]++
			}
		}
	}
	x := index{needs: make([]needs, len(rules))}
	at := make(map[part]int)
	for i := range rules {
		if rules[i].Off {
			continue
		}
		r := &rules[i]
		best := selective(r.when, popular)
		if best < 0 {
			x.needs[i] = needsOf(r, -1)
			x.others.rules = append(x.others.rules, int32(i))
			continue
		}
		w := r.when[best]
		if w.Exact {
			x.needs[i] = needsOf(r, best)
		} else {
			x.needs[i] = needsOf(r, -1)
		}
		n, ok := at[w.part]
		if !ok {
			n, at[w.part] = len(x.probes), len(x.probes)
			x.probes = append(x.probes, probe{part: w.part, rules: make(map[string]*list)})
		}
		x.probes[n].add(int32(i), w.Values)
	}
	for i := range x.probes {
		x.probes[i].close(x.needs)
	}
	x.others.close(x.needs)
	return x
}

// add adds a rule under each of values.
func (p *probe) add(rule int32, values []string) {
	for _, v := range values {
		p.empty = p.empty || v == ""
		l := p.rules[v]
		if l == nil {
			l = new(list)
			p.rules[v] = l
		}
		if n := len(l.rules); n == 0 || l.rules[n-1] != rule { // a value may be listed twice
			l.rules = append(l.rules, rule)
		}
	}
}

// selective returns the index of the equality condition whose most popular
// value is the least popular, or -1 when no condition is one of equality.
func selective(when []condition, popular map[asked]int) int {
	best, least := -1, 0
	for i, w := range when {
		values := w.Values
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
