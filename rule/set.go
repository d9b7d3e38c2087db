package rule

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/window"
)

// Set is a compiled list of rules. Make one with [New]. It is immutable and
// safe for concurrent use.
//
// Its methods take a request as a vector of values: values[i] is the value of
// Attributes()[i], empty when the request has none. A vector is exactly as
// long as Attributes.
type Set struct {
	rules      []compiled
	attributes []string
	position   map[string]int // in attributes
	byName     map[string]int
	outcomes   map[string]Outcome
	index      index
}

// compiled is a rule with its attributes as positions in a vector.
type compiled struct {
	Rule
	id   string
	when []condition
	// indexed is the one of when that holds for whatever the index finds, or -1.
	indexed int

	allows bool // of a verdict: it lets the request pass

	per              []part
	together, of, by part // at < 0: the rule has none

	limit *window.Compiled            // when the quota is one number
	cases map[string]*window.Compiled // by the value of by
	other *window.Compiled            // else; nil: none
}

// part is the value of one attribute, as one rule sees it.
type part struct {
	at   int
	trim bool
}

type condition struct {
	part
	test Test
}

// value is p in values, "" when there is no such attribute.
func (p part) value(values []string) string {
	if p.at < 0 {
		return ""
	}
	if p.trim {
		return strings.TrimSpace(values[p.at])
	}
	return values[p.at]
}

// New compiles rules, in the order in which they apply, and the outcomes that
// they may name beside allow and deny. It copies its arguments. Its error is a
// [fault.List] with everything that is wrong. Paths of faults start with the
// rule's index, "rules[3].limit.pro", or with "outcomes.".
func New(rules []Rule, outcomes map[string]Outcome) (*Set, error) {
	if faults := check(rules, outcomes); len(faults) > 0 {
		return nil, faults.Err()
	}
	s := &Set{
		rules:    make([]compiled, len(rules)),
		byName:   make(map[string]int, len(rules)),
		outcomes: map[string]Outcome{Allow: {Allow: true, Status: 200}, Deny: {Status: 429}},
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
		s.rules[i] = compile(copyOf(rules[i]), at)
		s.rules[i].allows = s.outcomes[rules[i].Then].Allow
		s.byName[rules[i].Name] = i
	}
	s.index = newIndex(s.rules)
	return s, nil
}

// collect gathers the attributes of rules and says where each is in a vector.
func (s *Set) collect(rules []Rule) (at map[string]int) {
	at = make(map[string]int)
	for i := range rules {
		for _, name := range rules[i].attributes() {
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

// attributes are the names that r uses, some of them more than once.
func (r *Rule) attributes() []string {
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

func copyOf(r Rule) Rule {
	r.When, r.Per, r.Feedback = slices.Clone(r.When), slices.Clone(r.Per), maps.Clone(r.Feedback)
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

// compile turns names into positions. What one condition trims is trimmed
// wherever the rule uses that attribute as a value: key, member, sum, quota.
func compile(r Rule, at map[string]int) compiled {
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
	for _, name := range r.Per {
		c.per = append(c.per, place(name))
	}
	c.together, c.of, c.by = place(r.Together), place(r.Of), place("")
	if r.Quota != nil {
		c.by = place(r.Quota.By)
	}
	c.limits()
	return c
}

// Len is the number of rules.
func (s *Set) Len() int { return len(s.rules) }

// Rule is rule i, in file order from 0. It is only to be read.
func (s *Set) Rule(i int) *Rule { return &s.rules[i].Rule }

// Find is the index of the rule called name.
func (s *Set) Find(name string) (int, bool) {
	i, ok := s.byName[name]
	return i, ok
}

// Allows says whether rule i, a verdict, lets the request pass: its outcome is
// [Allow] or one that allows.
func (s *Set) Allows(i int) bool { return s.rules[i].allows }

// Outcome is how the outcome called name is shown; its Status is set. The
// body is only to be read.
func (s *Set) Outcome(name string) (Outcome, bool) {
	o, ok := s.outcomes[name]
	return o, ok
}

// Attributes are the names that any rule uses, sorted. An index into them is a
// position in a vector of values. The slice is only to be read.
func (s *Set) Attributes() []string { return s.attributes }

// Attribute is the position of the attribute called name.
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

// fewAttributes are found faster one by one than in a map: most names differ in
// length.
const fewAttributes = 8
