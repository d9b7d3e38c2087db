package rule

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

// Set is a compiled list of rules. Make one with [New]; the zero Set has no rules
// and no outcomes, and an engine refuses it. It is immutable and safe for
// concurrent use.
//
// Its methods take a request as a vector of values, and a rule as its index.
// values[i] is the value of the attribute Attributes()[i], or "" if the request
// does not have it. The vector must be as long as Attributes(). A rule's index is
// from 0 to Len()-1, in the order of the rules.
type Set struct {
	rules      []compiled
	attributes []string
	position   map[string]int // in attributes
	byName     map[string]int
	outcomes   map[string]Outcome
	unmatched  string    // outcome
	addresses  []int     // positions of attributes that are addresses
	networks   []network // whose values follow those of the attributes
	index      index
}

// compiled is a rule whose attributes are positions in a vector.
type compiled struct {
	Rule
	id   string
	when []condition

	allows bool // the rule is a verdict that allows

	per              []part
	together, of, by part // at < 0: the rule has none

	limit *window.Compiled            // when the quota is one number
	cases map[string]*window.Compiled // by the value of the attribute by
	other *window.Compiled            // for every other value; nil: none
}

// part is a reference to one attribute's value, trimmed or not.
type part struct {
	at   int
	trim bool
}

// condition is a [Condition] whose attribute is a position in a vector.
type condition struct {
	part
	test Test
}

// value returns the value in values, and "" when p refers to no attribute.
func (p part) value(values []string) string {
	if p.at < 0 {
		return ""
	}
	if p.trim {
		return strings.TrimSpace(values[p.at])
	}
	return values[p.at]
}

// New compiles rules, in the order in which they apply, and outcomes by name. In
// Then a rule can name one of these, [Allow] or [Deny]. New copies its arguments.
// Its error is a [fault.List] of everything that is wrong. The paths of the
// faults start with the rule's index, "rules[3].limit.pro", or with "outcomes.".
func New(rules []Rule, outcomes map[string]Outcome) (*Set, error) {
	if faults := check(rules, outcomes); len(faults) > 0 {
		return nil, faults.Err()
	}
	s := &Set{
		rules:    make([]compiled, len(rules)),
		byName:   make(map[string]int, len(rules)),
		outcomes: map[string]Outcome{Allow: {Allow: true, Status: 200}, Deny: {Status: 429}},

		unmatched: Allow,
	}
	for name, o := range outcomes {
		switch {
		case o.Status != 0:
		case o.Allow:
			o.Status = 200
		default:
			o.Status = 429
		}
		o.Body = bytes.Clone(o.Body)
		s.outcomes[name] = o
	}
	at := s.collect(rules)
	for i := range rules {
		s.rules[i] = s.compile(copyOf(rules[i]), at)
		s.rules[i].allows = s.outcomes[rules[i].Then].Allow
		s.byName[rules[i].Name] = i
	}
	s.index = newIndex(s.rules)
	return s, nil
}

// collect stores the attributes of rules in s and returns the position of each
// in a vector.
func (s *Set) collect(rules []Rule) (at map[string]int) {
	at = make(map[string]int)
	for i := range rules {
		for _, name := range rules[i].Attributes() {
			at[name] = 0
		}
	}
	s.attributes = slices.Sorted(maps.Keys(at))
	for i, name := range s.attributes {
		at[name] = i
	}
	s.position = at
	return at
}

// Attributes returns the names of the attributes that r uses. Names may repeat.
func (r *Rule) Attributes() []string {
	names := slices.Clone(r.Per)
	for i := range r.When {
		names = append(names, r.When[i].Attribute)
	}
	if r.Of != "" {
		names = append(names, r.Of)
	}
	if r.Quota != nil && r.Quota.By != "" {
		names = append(names, r.Quota.By)
	}
	return names
}

// copyOf returns a deep copy of r.
func copyOf(r Rule) Rule {
	r.When, r.Per, r.Feedback = slices.Clone(r.When), slices.Clone(r.Per), maps.Clone(r.Feedback)
	r.Networks = maps.Clone(r.Networks)
	if r.Quota != nil {
		q := *r.Quota
		q.Cases = maps.Clone(q.Cases)
		if q.Else != nil {
			other := *q.Else
			q.Else = &other
		}
		r.Quota = &q
	}
	return r
}

// compile turns r into its compiled form; at holds the positions of attributes.
// An attribute that one condition trims is trimmed wherever the rule uses its
// value: in the key, the member, the sum and the quota.
func (s *Set) compile(r Rule, at map[string]int) compiled {
	c := compiled{Rule: r, id: identity(&r)}
	trimmed := func(name string) bool {
		return slices.ContainsFunc(r.When, func(c Condition) bool { return c.Attribute == name && c.Trim })
	}
	place := func(name string) part {
		if name == "" {
			return part{at: -1}
		}
		return part{at: at[name], trim: trimmed(name)}
	}
	for _, w := range r.When {
		c.when = append(c.when, condition{part{at[w.Attribute], w.Trim}, w.Test})
	}
	keyed := func(name string) part {
		p := place(name)
		if n, ok := r.Networks[name]; ok {
			p.at = s.networkAt(network{p.at, n})
		}
		return p
	}
	for _, name := range r.Per {
		c.per = append(c.per, keyed(name))
	}
	c.together, c.of, c.by = keyed(r.Together), place(r.Of), place("")
	if r.Quota != nil {
		c.by = place(r.Quota.By)
	}
	c.limits()
	return c
}

// networkAt returns the position of n in a vector. It adds n if it is new.
func (s *Set) networkAt(n network) int {
	i := slices.Index(s.networks, n)
	if i < 0 {
		i = len(s.networks)
		s.networks = append(s.networks, n)
	}
	return len(s.attributes) + i
}

// IsZero reports whether s is the zero Set, which [New] did not make.
func (s *Set) IsZero() bool { return s.outcomes == nil }

// Len returns the number of rules.
func (s *Set) Len() int { return len(s.rules) }

// Rule returns rule i. The caller must not change it.
func (s *Set) Rule(i int) *Rule { return &s.rules[i].Rule }

// Find returns the index of the rule called name, and reports whether there is
// one.
func (s *Set) Find(name string) (int, bool) {
	i, ok := s.byName[name]
	return i, ok
}

// Allows reports whether rule i is a verdict whose outcome allows the request.
func (s *Set) Allows(i int) bool { return s.rules[i].allows }

// Outcome returns the outcome called name, and reports whether there is one. Its
// Status is never 0. The caller must not change the body.
func (s *Set) Outcome(name string) (Outcome, bool) {
	o, ok := s.outcomes[name]
	return o, ok
}

// WithUnmatched returns a copy of s in which requests that no rule matches get the
// outcome called name. An empty name means [Allow], which is also the outcome in a
// set that [New] returns. The error is about a name that is no outcome of s.
func (s *Set) WithUnmatched(name string) (*Set, error) {
	if name == "" {
		name = Allow
	}
	if _, ok := s.outcomes[name]; !ok {
		known := strings.Join(slices.Sorted(maps.Keys(s.outcomes)), ", ")
		return nil, fault.Newf("unmatched", "unknown outcome %s: want one of %s", quoted(name), known)
	}
	c := *s
	c.unmatched = name
	return &c, nil
}

// Unmatched returns the name of the outcome of requests that no rule matches, and
// reports whether it allows them.
func (s *Set) Unmatched() (name string, allows bool) {
	return s.unmatched, s.unmatched == Allow || s.outcomes[s.unmatched].Allow
}

// Attributes returns the sorted names of all attributes that rules use. The index
// of a name is its position in a vector of values. The caller must not change the
// slice.
func (s *Set) Attributes() []string { return s.attributes }

// Attribute returns the position of the attribute called name in a vector of
// values, and reports whether any rule uses it.
func (s *Set) Attribute(name string) (int, bool) {
	if len(s.attributes) > fewAttributes {
		i, ok := s.position[name]
		return i, ok
	}
	for i := range s.attributes {
		if s.attributes[i] == name {
			return i, true
		}
	}
	return 0, false
}

// fewAttributes is how many attributes are compared one by one, which is faster
// than a map: most names differ in length.
const fewAttributes = 8
