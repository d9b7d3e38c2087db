package plan

import (
	"maps"
	"slices"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Rules is a rule set with the spaces that its counters live in. It is
// immutable and safe for concurrent use.
type Rules struct {
	*rule.Set
	*ruleset.Compiled
	namespace string
	prepared  []Prepared // by rule
	overrides *override.Set

	holds, bans bool     // some rule does
	feedback    []string // the names in the rules' Feedback, ascending
}

// Holds reports whether takes under some rule can hold.
func (r *Rules) Holds() bool { return r.holds }

// Bans returns the ban of each rule that counts, by the identity of the rule's space.
func (r *Rules) Bans() map[string]window.Ban {
	bans := make(map[string]window.Ban, len(r.prepared))
	for i := range r.prepared {
		if r.prepared[i].Kind != rule.KindVerdict {
			bans[r.prepared[i].Space.ID()] = r.Rule(i).Ban
		}
	}
	return bans
}

// CheckFeedback returns an error if no rule has the feedback called name. The error is a [*fault.Fault].
func (r *Rules) CheckFeedback(name string) error {
	if _, ok := slices.BinarySearch(r.feedback, name); !ok {
		return fault.Newf("feedback", "no rule has %q%s", name, fault.DidYouMean(name, r.feedback))
	}
	return nil
}

// NewRules returns set with a space for each of its rules, in namespace. A rule with the same identity
// ([ruleset.Compiled.ID]) and maximum number of keys as a rule in old keeps that rule's space. old may be nil. The
// rules have no overrides.
func NewRules(set *rule.Set, namespace string, old *Rules) *Rules {
	known := map[string]*store.Space{}
	if old != nil && old.namespace == namespace {
		for i := range old.prepared {
			s := old.prepared[i].Space
			known[s.ID()] = s
		}
	}
	rules := &Rules{
		Set: set, Compiled: set.Compiled(), namespace: namespace, prepared: make([]Prepared, set.Len()),
	}
	for i := range rules.prepared {
		r := set.Rule(i)
		s := store.NewSpace(namespace, set.Compiled().ID(i), r.Name, r.MaxKeys)
		if old := known[s.ID()]; old != nil && old.MaxKeys() == s.MaxKeys() {
			s = old
		}
		rules.prepared[i] = prepare(set, i, s)
		rules.holds = rules.holds || r.Holds()
		rules.bans = rules.bans || r.Ban != window.Ban{}
		rules.feedback = slices.AppendSeq(rules.feedback, maps.Keys(r.Feedback))
	}
	slices.Sort(rules.feedback)
	rules.feedback = slices.Compact(rules.feedback)
	return rules
}

// WithOverrides returns r with the overrides of set, which may be nil, instead of its own.
func (r *Rules) WithOverrides(set *override.Set) *Rules {
	next := *r
	next.overrides, next.prepared = set, slices.Clone(r.prepared)
	for i := range next.prepared {
		p := &next.prepared[i]
		o := set.Rule(p.Name)
		switch {
		case p.overrides == nil && o == nil, p.overrides != nil && p.overrides.of == o:
			continue
		case o == nil || !CanOverride(r.Rule(i)):
			*p = prepare(r.Set, i, p.Space)
			continue
		}
		p.overrides = bind(r.Compiled, i, len(r.Rule(i).Per), o, p.overrides)
		if p.Limit = nil; p.overrides == nil {
			*p = prepare(r.Set, i, p.Space)
		}
	}
	return &next
}

// Prepared returns what the ops of rule i share. The caller must not change it.
func (r *Rules) Prepared(i int) *Prepared { return &r.prepared[i] }

// Locate returns the op that finds a key of the rule called name, and the
// rule's index. It needs the attributes of the key only; the rule's other
// conditions need not hold. ok is false when no rule of that name counts.
func (r *Rules) Locate(name string, values []string) (op store.Op, i int, ok bool, err error) {
	i, ok = r.Find(name)
	if !ok || r.Rule(i).Kind() == rule.KindVerdict {
		return op, i, false, nil
	}
	ru := r.Rule(i)
	for _, attribute := range ru.Per {
		if at, _ := r.Attribute(attribute); values[at] == "" {
			return op, i, true, &fault.Fault{
				Path: "attributes." + attribute, Problem: "missing: rule " + name + " counts per " + attribute,
			}
		}
	}
	op = store.Op{
		Space: r.prepared[i].Space, Key: r.AppendKey(nil, i, values), Together: []byte(r.Together(i, values)),
	}
	if r.prepared[i].overrides != nil {
		if op.Limit, _ = r.prepared[i].overrides.limit(r.Compiled, i, op.Key, values, nil); op.Limit != nil {
			return op, i, true, nil
		}
	}
	if op.Limit, err = r.LimitOf(i, values, nil); err != nil {
		return op, i, true, r.invalid(i, ru.Quota.Of, err)
	}
	if op.Limit == nil {
		return op, i, true, &fault.Fault{
			Path: "attributes." + ru.Quota.Attribute(), Problem: "missing: the limit of rule " + name + " depends on it",
		}
	}
	return op, i, true, nil
}

// invalid returns the fault of a value of attribute that rule i cannot use, because of err.
func (r *Rules) invalid(i int, attribute string, err error) error {
	return &fault.Fault{Path: "attributes." + attribute, Problem: "rule " + r.Rule(i).Name + ": " + err.Error()}
}

// Overridden reports whether op, which Locate returned for rule i, has the limit of an override.
func (r *Rules) Overridden(op *store.Op, i int, values []string) bool {
	if r.prepared[i].overrides == nil {
		return false
	}
	l, _ := r.prepared[i].overrides.limit(r.Compiled, i, op.Key, values, nil)
	return l != nil
}

// Overrides returns the overrides of r, or nil.
func (r *Rules) Overrides() *override.Set { return r.overrides }

// OnOutage returns the outage policy of rule i.
func (r *Rules) OnOutage(i int) rule.Outage { return r.Rule(i).OnOutage }

// Prepared is what the ops of one rule share, and what decisions say of the rule. It
// saves cache misses: a [rule.Rule] has the same, spread over 400 bytes.
type Prepared struct {
	Kind  rule.Kind
	Role  store.Role
	Space *store.Space

	// Limit is set for a rule that counts hits under one limit, and has no
	// Together and no overrides: its ops need nothing else from the request but the key and the hits.
	Limit *window.Compiled

	// SameKey reports whether keys are equal to those of the rule before it.
	SameKey bool

	Name        string
	Outcome     string // of a request that the rule denies
	Shadow      bool
	CountDenied bool
	Held        bool // the window counts only what is held
	Reports     bool // [rule.Rule.Reports] is to be asked

	overrides *overrides // or nil
}

// prepare returns what the ops of rule i share.
func prepare(set *rule.Set, i int, space *store.Space) Prepared {
	r := set.Rule(i)
	p := Prepared{
		Kind: r.Kind(), Role: role(r), Space: space,
		SameKey: i > 0 && set.Compiled().SameKey(i, i-1),
		Name:    r.Name, Outcome: r.Then, Shadow: r.Mode == rule.Shadow,
		CountDenied: r.CountDenied, Held: r.Window.Kind == window.KindHeld,
		Reports: r.Trigger > 0 || r.Near > 0,
	}
	if p.Outcome == "" {
		p.Outcome = rule.Deny
	}
	fixed := p.Kind != rule.KindVerdict && (r.Quota == nil || r.Quota.Attribute() == "")
	if fixed && r.Measure == window.Count && r.Together == "" {
		p.Limit, _ = set.Compiled().LimitOf(i, nil, nil) // only a value of an attribute can be invalid
	}
	return p
}

func role(r *rule.Rule) store.Role {
	switch {
	case r.Kind() == rule.KindVerdict && r.Mode == rule.Enforce:
		return store.Enforce // it has no op
	case r.Kind() != rule.KindLimit:
		return store.Always
	case r.Mode == rule.Shadow:
		return store.Shadow
	}
	return store.Enforce
}
