package rulefile

import (
	"errors"
	"strings"

	"github.com/weirhq/weir/rule"
)

// compiled notes what [rule.New] found wrong, at the places that it means.
// A rule that could not be read whole gives rise to faults of its own there,
// which say nothing new; those are left out.
func (p *pass) compiled(err error, root *node) {
	var faults rule.Faults
	if !errors.As(err, &faults) {
		p.fault(root, "%v", err)
		return
	}
	own := p.faults
	for _, f := range faults {
		n := root
		if f.Rule >= 0 {
			n = root.get("rules").items[f.Rule]
		}
		at, found := place(n, f.Field)
		if echo(own, n, f.Field, found) {
			continue
		}
		if at.kind == aTable && at.key != nil {
			at = at.key
		}
		p.rule = f.Name
		p.fault(at, "%s: %s", f.Field, f.Problem)
		p.rule = ""
	}
}

// place is the node that a field's path leads to, or the last one on the way.
// Names on the path may have dots in them.
func place(n *node, path string) (at *node, found bool) {
	if path == "" {
		return n, true
	}
	for _, e := range n.entries {
		rest, ok := strings.CutPrefix(path, e.key.text)
		if !ok || rest != "" && rest[0] != '.' {
			continue
		}
		if at, found := place(e.value, strings.TrimPrefix(rest, ".")); found || rest != "" {
			return at, found
		}
	}
	return n, false
}

// echo says that a fault at a field of rule n only follows from faults that
// were found while reading: the rule has some, and they stand in the same
// field, or the field is missing.
func echo(own Faults, n *node, field string, found bool) bool {
	first, _, _ := strings.Cut(field, ".")
	from, to := n.span()
	v := n.get(first)
	for _, f := range own {
		if f.Line < from || f.Line > to {
			continue
		}
		if !found || v == nil {
			return true
		}
		if a, b := v.span(); a <= f.Line && f.Line <= b {
			return true
		}
	}
	return false
}

// span are the first and the last line of n's values.
func (n *node) span() (from, to int) {
	from, to = n.line, n.line
	for _, item := range n.items {
		_, last := item.span()
		to = max(to, last)
	}
	for _, e := range n.entries {
		_, last := e.value.span()
		to = max(to, e.key.line, last)
	}
	return from, to
}
