package rule

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/ruleset"
)

// Set is a compiled list of rules. Make one with [New]; the zero Set has no rules
// and no outcomes, and an engine refuses it. It is immutable and safe for
// concurrent use.
//
// A rule's index is from 0 to Len()-1, in the order of the rules.
type Set struct {
	rules    []Rule
	byName   map[string]int
	outcomes map[string]Outcome
	compiled *ruleset.Compiled // nil in the zero Set
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
		rules:    make([]Rule, len(rules)),
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
	compiled, all := make([]ruleset.Rule, len(rules)), limits{}
	for i := range rules {
		r := &s.rules[i]
		*r = copyOf(rules[i])
		s.byName[r.Name] = i
		compiled[i] = r.compile(all)
		compiled[i].Allows = s.outcomes[r.Then].Allow
	}
	s.compiled = ruleset.New(compiled, Allow, true)
	return s, nil
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

// Compiled returns the form of s that engines use, whose type is internal.
func (s *Set) Compiled() *ruleset.Compiled {
	if s.compiled == nil {
		return new(ruleset.Compiled)
	}
	return s.compiled
}

// Len returns the number of rules.
func (s *Set) Len() int { return len(s.rules) }

// Rule returns rule i. The caller must not change it.
func (s *Set) Rule(i int) *Rule { return &s.rules[i] }

// Find returns the index of the rule called name, and reports whether there is
// one.
func (s *Set) Find(name string) (int, bool) {
	i, ok := s.byName[name]
	return i, ok
}

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
		return nil, fault.Newf("unmatched", "unknown outcome %s: want one of %s", ruleset.Quoted(name), known)
	}
	c := *s
	c.compiled = s.compiled.WithUnmatched(name, s.outcomes[name].Allow)
	return &c, nil
}

// Attributes returns the sorted names of all attributes that rules use. The caller must
// not change the slice.
func (s *Set) Attributes() []string { return s.Compiled().Names() }
