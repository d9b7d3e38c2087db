package rule

import (
	"slices"

	"github.com/weirhq/weir/window"
)

// Match appends the indexes of the rules that match values to dst, in the order of
// the rules, and returns the extended slice.
//
// A rule matches when all its conditions hold, when the attributes that it needs
// for its key, sum or members are not empty, and when it has a quota for the
// request. A rule whose mode is [Off] never matches. No rule matches after a
// verdict with [RestSkip] that matches and is enforced. After a verdict with
// [RestCount] other rules can match, among them verdicts.
//
// Match allocates only when dst has no room, and when an [Address] test gets a
// value that looks like an address but is none. A rule with an [Equal] condition
// costs nothing if the request has none of its values.
func (s *Set) Match(values []string, dst []int) []int { return s.match(values, dst, false) }

// MatchHeld is like Match for a request about the holds of an earlier take. A rule
// that sums an attribute matches also where that is missing, because the take has
// told the amount.
func (s *Set) MatchHeld(values []string, dst []int) []int { return s.match(values, dst, true) }

func (s *Set) match(values []string, dst []int, held bool) []int {
	m := matching{rules: s.rules, values: values, held: held, dst: dst, start: len(dst), end: int32(len(s.rules))}
	m.try(s.index.others)
	for i := range s.index.probes {
		p := &s.index.probes[i]
		v := p.value(values)
		if v == "" && !p.empty {
			continue
		}
		m.try(p.of(v))
	}
	return m.matched()
}

// matching is one run of Match.
type matching struct {
	rules  []compiled
	values []string
	held   bool // sums need no amounts
	dst    []int
	start  int   // where this run's matches start in dst
	end    int32 // index of the last rule that can match
}

// try adds the candidates that match. Candidates are in ascending order.
func (m *matching) try(candidates []int32) {
	for _, i := range candidates {
		if i > m.end {
			return
		}
		r := &m.rules[i]
		if !r.matches(m.values, m.held) {
			continue
		}
		m.dst = append(m.dst, int(i))
		if r.final() {
			m.end = i
			return
		}
	}
}

// matched returns dst with the matches in order. Each list of candidates adds
// them in ascending order, and usually one list adds them all.
func (m *matching) matched() []int {
	found := m.dst[m.start:]
	if len(found) > 1 && !slices.IsSorted(found) {
		slices.Sort(found)
	}
	for len(found) > 0 && found[len(found)-1] > int(m.end) {
		found = found[:len(found)-1]
	}
	return m.dst[:m.start+len(found)]
}

// final reports whether a match of c ends the matching.
func (c *compiled) final() bool {
	return c.Kind() == KindVerdict && c.Mode == Enforce && c.Rest == RestSkip
}

// matches reports whether c, which the index found, matches values. held: a sum
// needs no amount.
func (c *compiled) matches(values []string, held bool) bool {
	for i := range c.when {
		if w := &c.when[i]; i != c.indexed && !w.test.Holds(w.value(values)) {
			return false
		}
	}
	for _, p := range c.per {
		if p.value(values) == "" {
			return false
		}
	}
	if c.of.at >= 0 && c.of.value(values) == "" && !(held && c.Measure == window.Sum) {
		return false
	}
	return c.by.at < 0 || c.limitOf(values) != nil
}
