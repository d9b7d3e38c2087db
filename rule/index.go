package rule

import (
	"cmp"
	"slices"
)

// Match appends the indexes of the rules that match values to dst, in file
// order, up to and including the first [Verdict] that is enforced, which ends
// the matching. Rules whose mode is off never match. It allocates only where
// dst has no room, and where a value that a test reads as an address is
// nearly one.
//
// A rule matches when all its conditions hold, the attributes that it needs
// for its key, sum or members are not empty, and it has a quota for the
// request. Rules with an equality condition cost nothing unless the request
// has the value that they ask for.
func (s *Set) Match(values []string, dst []int) []int {
	m := matching{rules: s.rules, values: values, dst: dst, start: len(dst), end: int32(len(s.rules))}
	m.try(s.index.others)
	for i := range s.index.probes {
		p := &s.index.probes[i]
		v := p.value(values)
		if v == "" && !p.empty {
			continue
		}
		m.try(p.rules[v])
	}
	return m.matched()
}

// matching is one run of Match.
type matching struct {
	rules  []compiled
	values []string
	dst    []int
	start  int   // where this run's matches start in dst
	end    int32 // no rule after this one counts any more
}

// try adds those of candidates that match. Candidates are ascending.
func (m *matching) try(candidates []int32) {
	for _, i := range candidates {
		if i > m.end {
			return
		}
		r := &m.rules[i]
		if !r.matches(m.values) {
			continue
		}
		m.dst = append(m.dst, int(i))
		if r.final() {
			m.end = i
			return
		}
	}
}

// matched is dst with the matches in order. Each list of candidates gave them
// ascending, and most often one list gave them all.
func (m *matching) matched() []int {
	found := m.dst[m.start:]
	if !slices.IsSorted(found) {
		slices.Sort(found)
	}
	for len(found) > 0 && found[len(found)-1] > int(m.end) {
		found = found[:len(found)-1]
	}
	return m.dst[:m.start+len(found)]
}

// final says that no rule after c is asked when c matches.
func (c *compiled) final() bool { return c.Kind() == Verdict && c.Mode == Enforce }

func (c *compiled) matches(values []string) bool {
	for i := range c.when {
		if w := &c.when[i]; !w.test.Holds(w.value(values)) {
			return false
		}
	}
	for _, p := range c.per {
		if p.value(values) == "" {
			return false
		}
	}
	if c.of.at >= 0 && c.of.value(values) == "" {
		return false
	}
	return c.by.at < 0 || c.limitFor(values) != nil
}

// index finds the rules that a request can match at all.
type index struct {
	others []int32 // rules without an equality condition
	probes []probe
}

// probe finds the rules that ask for equality on one attribute.
type probe struct {
	part
	rules map[string][]int32 // by the value, ascending
	empty bool               // one of the values is ""
}

// asked is one value that a rule can ask of an attribute.
type asked struct {
	part
	value string
}

// newIndex puts each rule under one of its equality conditions, the one whose
// values are asked for by the fewest rules: of `action: post` and `user: ann`
// most often the second.
func newIndex(rules []compiled) index {
	popular := make(map[asked]int)
	for i := range rules {
		for _, w := range rules[i].when {
			for _, v := range equals(w.test) {
				popular[asked{w.part, v}]++
			}
		}
	}
	var x index
	at := make(map[part]int)
	for i := range rules {
		if rules[i].Mode == Off {
			continue
		}
		best, ok := selective(rules[i].when, popular)
		if !ok {
			x.others = append(x.others, int32(i))
			continue
		}
		n, ok := at[best.part]
		if !ok {
			n, at[best.part] = len(x.probes), len(x.probes)
			x.probes = append(x.probes, probe{part: best.part, rules: make(map[string][]int32)})
		}
		x.probes[n].add(int32(i), equals(best.test))
	}
	return x
}

func (p *probe) add(rule int32, values []string) {
	for _, v := range values {
		p.empty = p.empty || v == ""
		list := p.rules[v]
		if len(list) == 0 || list[len(list)-1] != rule { // a value may be asked twice
			p.rules[v] = append(list, rule)
		}
	}
}

// selective is the equality condition whose most popular value is the least so.
func selective(when []condition, popular map[asked]int) (best condition, ok bool) {
	least := 0
	for _, w := range when {
		values := equals(w.test)
		if values == nil {
			continue
		}
		most := 0
		for _, v := range values {
			most = max(most, popular[asked{w.part, v}])
		}
		if !ok || most < least {
			best, least, ok = w, most, true
		}
	}
	return best, ok
}

// equals are the values outside of which t cannot hold; nil where it is not a
// test of equality.
func equals(t Test) []string {
	switch t := t.(type) {
	case equal:
		return t.values
	case all:
		var fewest []string
		for _, part := range t {
			if values := equals(part); values != nil && (fewest == nil || cmp.Less(len(values), len(fewest))) {
				fewest = values
			}
		}
		return fewest
	}
	return nil
}
