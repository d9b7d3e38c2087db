package plan

import (
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// prepared is what the ops of one rule share.
type prepared struct {
	kind rule.Kind
	held bool // the window counts only what is held
	role store.Role

	// limit is set for a rule that counts hits under one limit, and has no
	// Together: its ops need nothing else from the request but the key.
	limit *window.Compiled
}

// prepare returns what the ops of rule i share.
func prepare(set *rule.Set, i int) prepared {
	r := set.Rule(i)
	p := prepared{kind: r.Kind(), held: r.Window.Kind == window.KindHeld, role: role(r)}
	fixed := p.kind != rule.KindVerdict && (r.Quota == nil || r.Quota.By == "")
	if fixed && r.Measure == window.Count && r.Together == "" {
		p.limit = set.LimitOf(i, nil)
	}
	return p
}

func role(r *rule.Rule) store.Role {
	switch {
	case r.Kind() != rule.KindLimit:
		return store.Always
	case r.Mode == rule.Shadow:
		return store.Shadow
	}
	return store.Enforce
}
