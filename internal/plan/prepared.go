package plan

import (
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Prepared has what the ops of one rule share, and what decisions state about the rule. It saves cache
// misses, because a [rule.Rule] has the same spread over 400 bytes.
type Prepared struct {
	Kind  rule.Kind
	Role  store.Role
	Space *store.Space

	// Limit is set for a rule that counts hits under one limit, and has no
	// Together: its ops need nothing else from the request but the key.
	Limit *window.Compiled

	// Plain reports whether only Limit decides a check, a take or a record: it is set, and
	// the op is neither about holds nor about bans, and is not counted when it is denied.
	Plain bool

	// SameKey reports whether keys are equal to those of the rule before it.
	SameKey bool

	Name    string
	Outcome string // of a request that the rule denies
	Shadow  bool
	Held    bool // the window counts only what is held
}

// prepare returns what the ops of rule i share.
func prepare(set *rule.Set, i int, space *store.Space) Prepared {
	r := set.Rule(i)
	p := Prepared{
		Kind: r.Kind(), Role: role(r), Space: space,
		SameKey: i > 0 && set.Compiled().SameKey(i, i-1),
		Name:    r.Name, Outcome: r.Then, Shadow: r.Mode == rule.Shadow,
		Held: r.Window.Kind == window.KindHeld,
	}
	if p.Outcome == "" {
		p.Outcome = rule.Deny
	}
	fixed := p.Kind != rule.KindVerdict && (r.Quota == nil || r.Quota.By == "")
	if fixed && r.Measure == window.Count && r.Together == "" {
		p.Limit = set.Compiled().LimitOf(i, nil)
	}
	p.Plain = p.Limit != nil && !r.CountDenied && !r.Holds() && r.Ban == (window.Ban{})
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
