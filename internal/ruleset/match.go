package ruleset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Match appends the indexes of the rules that match values to dst, in the order of
// the rules, and returns the extended slice. aboutHolds states that the request is about the
// holds of an earlier take: then a rule that sums an attribute also matches without the
// attribute, because the take had the amount.
//
// A rule matches when all its conditions hold, when the attributes that it needs
// for its key, sum or members are not empty, and when it has a quota for the
// request. A rule that is off never matches. No rule matches after one that
// matches and ends the matching ([Rule.Ends]).
//
// Match allocates only if dst has no capacity left, and if a test on an address gets a
// value that resembles an address but is not one. A rule with a condition of equality
// costs nothing if the request has none of its values. Neither values nor dst escape.
func (s *Compiled) Match(values []string, dst []int, aboutHolds bool) []int {
	start, lists := len(dst), 0
	last := len(s.rules) - 1 // the last rule that can match
	probes, needs := s.index.probes, s.index.needs
	for i := range probes {
		p := &probes[i]
		l := p.list(p.value(values))
		if l == nil || l.uniform && values[l.at] == "" {
			continue
		}
		lists++
		for _, i := range l.rules {
			if int(i) > last {
				break
			}
			n := &needs[i]
			if !l.uniform && !n.met(values, aboutHolds) {
				continue
			}
			dst = append(dst, int(i))
			if n.final {
				last = int(i)
				break
			}
		}
	}
	if lists < 2 { // each list adds its rules in ascending order, none of them after last
		return dst
	}
	found := dst[start:]
	if !slices.IsSorted(found) {
		slices.Sort(found)
	}
	for len(found) > 0 && found[len(found)-1] > last {
		found = found[:len(found)-1]
	}
	return dst[:start+len(found)]
}

// index finds the rules that a request can match at all.
type index struct {
	probes []probe
	needs  []needs // by rule
}

// list is rules that the index finds together.
type list struct {
	rules []int32 // ascending

	// uniform reports whether a request for which the index finds the rules matches all of
	// them if it has the value at, and otherwise none. Most rules need nothing else: they are
	// for one value, and per one attribute.
	uniform bool
	at      int
}

// probe finds the rules with an equality condition on one attribute. The rules without
// such a condition have a probe on no attribute, whose value is always "".
type probe struct {
	part
	rules map[string]*list // by the value
	empty bool             // one of the values is ""

	// few has the content of rules if there are few values, because comparing them is four
	// times as fast as hashing the request's value.
	few []fewRules
}

// fewRules are the rules of one value.
type fewRules struct {
	value string
	list  list
}

// fewValues is the maximum number of values that are compared one by one.
const fewValues = 6

// list returns the rules of a value, or nil.
func (p *probe) list(value string) *list {
	switch {
	case value == "" && !p.empty:
		return nil
	case p.few == nil:
		return p.rules[value]
	}
	for i := range p.few {
		if f := &p.few[i]; f.value == value {
			return &f.list
		}
	}
	return nil
}

// finish completes p after all rules were added. all are the needs of the set's rules.
func (p *probe) finish(all []needs) {
	for _, l := range p.rules {
		l.uniform = true
		for _, i := range l.rules {
			n := &all[i]
			if len(n.tests) > 0 || n.rare != nil || len(n.parts) != 1 || n.parts[0].trim || n.final ||
				n.parts[0].at != all[l.rules[0]].parts[0].at {
				l.uniform = false
				break
			}
			l.at = n.parts[0].at
		}
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
// values the fewest rules have: of "action: post" and "user: ann" usually the second.
func newIndex(rules []compiledRule) index {
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
		found := part{at: -1}
		values, indexed := []string{""}, -1
		if best := selective(r.when, popular); best >= 0 {
			w := r.when[best]
			found, values = w.part, w.Values
			if w.Exact {
				indexed = best
			}
		}
		x.needs[i] = needsOf(r, indexed)
		n, ok := at[found]
		if !ok {
			n, at[found] = len(x.probes), len(x.probes)
			x.probes = append(x.probes, probe{part: found, rules: make(map[string]*list)})
		}
		x.probes[n].add(int32(i), values)
	}
	for i := range x.probes {
		x.probes[i].finish(x.needs)
	}
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

// needs has the remaining conditions of a rule that the index has found for a request. It
// is separate from the rules, which are large, so that matching reads one cache line of a
// rule instead of four.
type needs struct {
	tests []condition   // which the index has not answered
	parts []part        // values that must not be empty
	rare  *compiledRule // the rule, if it counts another attribute or has a quota by one; or nil
	final bool          // a match ends the matching
}

// needsOf returns the needs of c. indexed is the position of the condition that holds
// for every request for which the index finds c, or -1.
func needsOf(c *compiledRule, indexed int) needs {
	n := needs{parts: c.per, final: c.Ends}
	for i, w := range c.when {
		if i != indexed {
			n.tests = append(n.tests, w)
		}
	}
	if c.of.at >= 0 || c.by.at >= 0 {
		n.rare = c
	}
	return n
}

// met reports whether values has what n needs. aboutHolds is that of [Compiled.Match].
func (n *needs) met(values []string, aboutHolds bool) bool {
	for i := range n.tests {
		if w := &n.tests[i]; !w.Test.Holds(w.value(values)) {
			return false
		}
	}
	for i := range n.parts {
		if n.parts[i].value(values) == "" {
			return false
		}
	}
	return n.rare == nil || n.rare.counts(values, aboutHolds)
}

// counts reports whether values has the attribute that c counts, and a quota.
func (c *compiledRule) counts(values []string, aboutHolds bool) bool {
	if c.of.at >= 0 && c.of.value(values) == "" && !(aboutHolds && c.Sums) {
		return false
	}
	return c.hasLimit(values)
}

// Why reports whether rule i matches values, regardless of the verdicts before it.
// If it does not match, reasons has a readable text for each cause: a condition
// that fails, a missing attribute, a value without a quota, or that the rule is off.
func (s *Compiled) Why(i int, values []string) (matched bool, reasons []string) {
	c := &s.rules[i]
	if c.Off {
		reasons = append(reasons, "mode is off")
	}
	missing := make(map[string]bool) // attributes that a reason names already
	lacks := func(name string) {
		if !missing[name] {
			missing[name] = true
			reasons = append(reasons, name+" is missing")
		}
	}
	for _, w := range c.when {
		name, v := w.Attribute, w.value(values)
		switch {
		case w.Test.Holds(v):
		case v != "":
			reasons = append(reasons, fmt.Sprintf("%s is %s, want %s", name, Quoted(v), Wanted(w.Test)))
		case w.Presence:
			lacks(name)
		default:
			missing[name] = true
			reasons = append(reasons, fmt.Sprintf("%s is missing, want %s", name, Wanted(w.Test)))
		}
	}
	for n, p := range c.per {
		if p.value(values) == "" {
			lacks(c.Per[n].Attribute)
		}
	}
	if c.of.at >= 0 && c.of.value(values) == "" {
		lacks(c.Of)
	}
	if !c.hasLimit(values) {
		if v := c.by.value(values); v == "" {
			lacks(c.By)
		} else {
			reasons = append(reasons, fmt.Sprintf("%s is %s, want %s", c.By, Quoted(v), Wanted(c.Known)))
		}
	}
	return len(reasons) == 0, reasons
}

// Wanted returns the text of t without its verb: "one of [a b]" of "is one of [a b]".
func Wanted(t Test) string { return strings.TrimPrefix(t.String(), "is ") }
