// Package ruleset has the compiled form of a list of rules: it finds the rules that
// match a request, and makes their keys. Package rule makes it. The package is pure: it
// has no clock, no lock and no IO.
package ruleset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/address"
	"github.com/weirhq/weir/window"
)

// Rule has the parts of a rule that matching and keys need.
type Rule struct {
	ID   string // see [Compiled.ID]
	When []Condition
	Per  []Part

	// Together, Of and By name the attributes of the group of keys, of the sum or the
	// members, and of the quota. An empty name means that the rule has none. Together is
	// in Per. Sums reports whether the values of Of are summed.
	Together, Of, By string
	Sums             bool

	Off    bool // the rule never matches
	Ends   bool // no rule after this one matches a request that this one matches
	Allows bool // the rule is a verdict that allows

	// Limit is the limit when By is empty. With By, the value of By is the quota, and Limit has
	// the highest one; or Limit is nil, and Cases has the limits by the value of By. Other is
	// that for other values, and with Limit for none; nil: there is none. Known holds for the
	// values in Cases.
	Limit, Other *window.Compiled
	Cases        map[string]*window.Compiled
	Known        Test
}

// Part is one attribute of a key. Addresses in it count by their first V4 or V6 bits; 0
// bits mean the whole address, and for other attributes both are 0.
type Part struct {
	Attribute string
	V4, V6    int
}

// Condition is one test on one attribute.
type Condition struct {
	Attribute string
	Test      Test
	Trim      bool // white space around the value is dropped before the test

	Values   []string // the only values for which Test can hold; nil: unknown
	Exact    bool     // Test holds for all of Values
	Presence bool     // Test holds for everything but a missing attribute
}

// Test is a predicate on a value, with its text; see rule.Test.
type Test interface {
	Holds(value string) bool
	String() string
}

// Compiled is a compiled list of rules. It is immutable and safe for concurrent use.
//
// Its methods take a request as a vector of values, and a rule as its index.
// values[i] is the value of the attribute Names()[i], or "" if the request does not
// have it. The networks of addresses by which keys count follow them. The vector has the length
// [Compiled.Width].
type Compiled struct {
	rules     []compiledRule
	names     []string
	position  map[string]int  // in names
	addresses []int           // sorted positions of attributes that are addresses
	networks  []network       // whose values follow those of the attributes
	networkIn map[network]int // networks; nil after New
	index     index

	unmatched string
	allows    bool // unmatched does
}

// IsZero reports whether s is the zero value, which [New] did not make.
func (s *Compiled) IsZero() bool { return s.position == nil }

// compiledRule is a rule whose attributes are positions in a vector.
type compiledRule struct {
	Rule
	when             []condition
	per              []part
	together, of, by part // at < 0: the rule has none
}

// part is a reference to one attribute's value, trimmed or not.
type part struct {
	at   int
	trim bool
}

// condition is a [Condition] whose attribute is a position in a vector.
type condition struct {
	part
	Condition
}

// network is a value of a vector that is computed from another one.
type network struct {
	from   int // the position of the address
	v4, v6 int
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

// New compiles rules. Requests that no rule matches get the outcome unmatched, and are
// allowed if allows is set. New keeps its arguments.
func New(rules []Rule, unmatched string, allows bool) *Compiled {
	s := &Compiled{rules: make([]compiledRule, len(rules)), networkIn: map[network]int{}, unmatched: unmatched, allows: allows}
	s.collect(rules)
	for i := range rules {
		s.rules[i] = s.compile(rules[i])
	}
	s.networkIn = nil
	s.index = newIndex(s.rules)
	return s
}

// collect stores the attributes of rules in s, with the position of each in a vector.
func (s *Compiled) collect(rules []Rule) {
	at := make(map[string]int)
	for i := range rules {
		r := &rules[i]
		for k := range r.When {
			at[r.When[k].Attribute] = 0
		}
		for _, p := range r.Per {
			at[p.Attribute] = 0
		}
		at[r.Of], at[r.By] = 0, 0
	}
	delete(at, "")
	s.names = slices.Sorted(maps.Keys(at))
	for i, name := range s.names {
		at[name] = i
	}
	s.position = at
}

// compile turns r into its compiled form. An attribute that one condition trims is
// trimmed wherever the rule uses its value: in the key, the member, the sum and the quota.
func (s *Compiled) compile(r Rule) compiledRule {
	c := compiledRule{Rule: r}
	c.When = nil // c.when has them
	trimmed := map[string]bool{}
	for _, w := range r.When {
		if w.Trim {
			trimmed[w.Attribute] = true
		}
	}
	place := func(name string) part {
		if name == "" {
			return part{at: -1}
		}
		return part{at: s.position[name], trim: trimmed[name]}
	}
	for _, w := range r.When {
		c.when = append(c.when, condition{part{s.position[w.Attribute], w.Trim}, w})
	}
	c.together, c.of, c.by = place(""), place(r.Of), place(r.By)
	for _, k := range r.Per {
		p := place(k.Attribute)
		if k.V4 != 0 || k.V6 != 0 {
			p.at = s.networkAt(network{p.at, k.V4, k.V6})
		}
		c.per = append(c.per, p)
		if k.Attribute == r.Together {
			c.together = p
		}
	}
	return c
}

// networkAt returns the position of n in a vector. It adds n if it is new.
func (s *Compiled) networkAt(n network) int {
	i, known := s.networkIn[n]
	if !known {
		i = len(s.networks)
		s.networks = append(s.networks, n)
		s.networkIn[n] = i
	}
	return len(s.names) + i
}

// WithAddresses returns a copy of s that makes the values of the attributes called names
// canonical. canonical returns a condition on one of them with canonical addresses in
// its test.
func (s *Compiled) WithAddresses(names []string, canonical func(Condition) Condition) *Compiled {
	c := *s
	c.addresses = nil
	for _, name := range names {
		if at, ok := s.Attribute(name); ok {
			c.addresses = append(c.addresses, at)
		}
	}
	slices.Sort(c.addresses)
	tests := func(w condition) bool { return c.isAddress(w.at) }
	if !slices.ContainsFunc(s.rules, func(r compiledRule) bool { return slices.ContainsFunc(r.when, tests) }) {
		return &c // with the rules and the index of s
	}
	c.rules = slices.Clone(s.rules)
	for i := range c.rules {
		r := &c.rules[i]
		r.when = slices.Clone(r.when)
		for k := range r.when {
			if tests(r.when[k]) {
				r.when[k].Condition = canonical(r.when[k].Condition)
			}
		}
	}
	c.index = newIndex(c.rules)
	return &c
}

// isAddress reports whether the values at a position in a vector are addresses.
func (s *Compiled) isAddress(at int) bool {
	_, is := slices.BinarySearch(s.addresses, at)
	return is
}

// Addresses returns the sorted names of the attributes that are addresses.
func (s *Compiled) Addresses() []string {
	names := make([]string, len(s.addresses))
	for i, at := range s.addresses {
		names[i] = s.names[at]
	}
	return names
}

// WithUnmatched returns a copy of s in which requests that no rule matches get the
// outcome called name.
func (s *Compiled) WithUnmatched(name string, allows bool) *Compiled {
	c := *s
	c.unmatched, c.allows = name, allows
	return &c
}

// Unmatched returns the name of the outcome of requests that no rule matches, and
// reports whether it allows them.
func (s *Compiled) Unmatched() (name string, allows bool) { return s.unmatched, s.allows }

// Allows reports whether rule i is a verdict whose outcome allows the request.
func (s *Compiled) Allows(i int) bool { return s.rules[i].Allows }

// Names returns the sorted names of all attributes that rules use. The index of a name
// is its position in a vector of values. The caller must not change the slice.
func (s *Compiled) Names() []string { return s.names }

// Attribute returns the position of the attribute called name in a vector of
// values, and reports whether any rule uses it.
func (s *Compiled) Attribute(name string) (int, bool) {
	if len(s.names) > fewNames {
		i, ok := s.position[name]
		return i, ok
	}
	for i := range s.names {
		if s.names[i] == name {
			return i, true
		}
	}
	return 0, false
}

// fewNames is how many attributes are compared one by one, which is faster than a map:
// most names differ in length.
const fewNames = 8

// Width returns the length of a vector of values: one element for each attribute, and one for each
// network.
func (s *Compiled) Width() int { return len(s.names) + len(s.networks) }

// Complete makes the addresses in values canonical, and fills in their networks.
// values has the length [Compiled.Width] and the attributes at the positions of
// [Compiled.Attribute].
func (s *Compiled) Complete(values []string) {
	for _, at := range s.addresses {
		if values[at] != "" {
			values[at], _ = address.Canonical(values[at])
		}
	}
	for i := range s.networks {
		n := &s.networks[i]
		text := values[n.from]
		if !s.isAddress(n.from) { // those are canonical by now
			text, _ = address.Canonical(text)
		}
		values[len(s.names)+i] = address.NetworkOf(text, n.v4, n.v6)
	}
}

// LimitOf returns the limit that rule i counts a request under: its quota in its
// window. The quota can depend on an attribute, or be its value. That of a trigger is its
// number, and that of a counter is [window.Unlimited]. LimitOf returns nil for a verdict, and
// for a rule that has no quota for the request and so does not match it. The error is about
// a value that is no quota, and names the attribute. The same limit is always the same
// pointer, but for one that LimitOf makes for a value and keeps in kept, which can be nil.
func (s *Compiled) LimitOf(i int, values []string, kept *Limits) (*window.Compiled, error) {
	c := &s.rules[i]
	if c.by.at < 0 {
		return c.Limit, nil
	}
	v := c.by.value(values)
	if v == "" || c.Limit == nil {
		return c.limitFor(v), nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, fmt.Errorf("attribute %q is %s, want a whole number from 0 on", c.By, Quoted(v))
	}
	return kept.limit(c.Limit, int64(min(n, uint64(c.Limit.Quota)))), nil
}

// CheckStatus returns an error if an outcome that allows or denies cannot have the HTTP status.
func CheckStatus(allow bool, status int) error {
	switch {
	case status < 200 || status > 599:
		return fmt.Errorf("%d is not an HTTP status, want 200 to 599", status)
	case allow && status >= 400:
		return fmt.Errorf("%d denies, and the outcome allows: want less than 400", status)
	case !allow && status < 300:
		return fmt.Errorf("%d allows, and the outcome denies: want 300 or more", status)
	}
	return nil
}

// AnyLimit returns a limit of rule i, which differs from its others in the quota only, or nil for a
// verdict.
func (s *Compiled) AnyLimit(i int) *window.Compiled {
	c := &s.rules[i]
	for _, l := range c.Cases {
		return l
	}
	return cmp.Or(c.Limit, c.Other)
}

// limitFor returns the limit for the value v of By, of which it is not the quota, or nil.
func (c *compiledRule) limitFor(v string) *window.Compiled {
	if l, ok := c.Cases[v]; ok {
		return l
	}
	return c.Other
}

// hasLimit reports whether c has a limit for a request, or its value of By has to be one.
func (c *compiledRule) hasLimit(values []string) bool {
	if c.by.at < 0 {
		return true
	}
	v := c.by.value(values)
	return v != "" && c.Limit != nil || c.limitFor(v) != nil
}

// Limits keeps the last few limits that [Compiled.LimitOf] has made, because making one takes
// longer than a decision. Its zero value is empty. It is not safe for concurrent use.
type Limits struct {
	last [8]struct {
		limit, highest *window.Compiled // limit is highest with another quota
	}
	next int // in last
}

// limit returns highest with the quota n, which is at most that of highest. l can be nil.
func (l *Limits) limit(highest *window.Compiled, n int64) *window.Compiled {
	switch {
	case n == highest.Quota:
		return highest
	case l == nil:
		return highest.WithQuota(n)
	}
	for i := range l.last {
		if e := &l.last[i]; e.highest == highest && e.limit.Quota == n {
			return e.limit
		}
	}
	e := &l.last[l.next]
	e.limit, e.highest = highest.WithQuota(n), highest
	l.next = (l.next + 1) % len(l.last)
	return e.limit
}
