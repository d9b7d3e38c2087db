package ruleset

import "slices"

// Match appends the indexes of the rules that match values to dst, in the order of
// the rules, and returns the extended slice.
//
// A rule matches when all its conditions hold, when the attributes that it needs
// for its key, sum or members are not empty, and when it has a quota for the
// request. A rule that is off never matches. No rule matches after one that
// matches and ends the matching ([Rule.Ends]).
//
// Match allocates only when dst has no room, and when a test on an address gets a
// value that looks like an address but is none. A rule with a condition of equality
// costs nothing if the request has none of its values.
func (s *Compiled) Match(values []string, dst []int) []int { return s.match(values, dst, false) }

// MatchHeld is like Match for a request about the holds of an earlier take. A rule
// that sums an attribute matches also where that is missing, because the take has
// told the amount.
func (s *Compiled) MatchHeld(values []string, dst []int) []int { return s.match(values, dst, true) }

// match does not keep values or dst, so that both can be on the caller's stack.
func (s *Compiled) match(values []string, dst []int, held bool) []int {
	x := &s.index
	start, end, lists := len(dst), len(s.rules), 0
	if len(x.others.rules) > 0 {
		dst, end = s.try(&x.others, values, held, dst, end)
		lists++
	}
	for i := range x.probes {
		p := &x.probes[i]
		v := p.value(values)
		if v == "" && !p.empty {
			continue
		}
		if l := p.of(v); l != nil {
			dst, end = s.try(l, values, held, dst, end)
			lists++
		}
	}
	if lists < 2 { // each list adds its rules in ascending order, none of them behind end
		return dst
	}
	found := dst[start:]
	if !slices.IsSorted(found) {
		slices.Sort(found)
	}
	for len(found) > 0 && found[len(found)-1] > end {
		found = found[:len(found)-1]
	}
	return dst[:start+len(found)]
}

// try appends the rules of l that match to dst. end is the index of the last rule that
// can match, which a rule that ends the matching lowers.
func (s *Compiled) try(l *list, values []string, held bool, dst []int, end int) ([]int, int) {
	if l.alike && values[l.at] == "" {
		return dst, end
	}
	for _, i := range l.rules {
		if int(i) > end {
			break
		}
		n := &s.index.needs[i]
		if !l.alike && !n.met(values, held) {
			continue
		}
		dst = append(dst, int(i))
		if n.ends {
			return dst, int(i)
		}
	}
	return dst, end
}

// needs is what a rule needs to match a request for which the index has found it. It
// is apart from the rules, which are large: matching then reads one cache line of a
// rule instead of four.
type needs struct {
	tests []condition // which the index has not answered
	parts []part      // values that must not be empty
	rare  *compiled   // the rule, if it counts another attribute or has a quota by one; or nil
	ends  bool        // a match ends the matching
}

// needsOf returns the needs of c. indexed is the position of the condition that holds
// for every request for which the index finds c, or -1.
func needsOf(c *compiled, indexed int) needs {
	n := needs{parts: c.per, ends: c.Ends}
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

// met reports whether values has what n needs. held: a sum needs no amount.
func (n *needs) met(values []string, held bool) bool {
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
	return n.rare == nil || n.rare.counts(values, held)
}

// counts reports whether values has the attribute that c counts, and a quota.
func (c *compiled) counts(values []string, held bool) bool {
	if c.of.at >= 0 && c.of.value(values) == "" && !(held && c.Sums) {
		return false
	}
	return c.by.at < 0 || c.limitOf(values) != nil
}
