package rulefile

import (
	"errors"
	"slices"
	"sort"
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
	p.faults.Sort(p.name)
	own := slices.Clone(p.faults)
	if i := slices.IndexFunc(own, func(f Fault) bool { return f.File != p.name }); i >= 0 {
		own = own[:i] // without those in list files
	}
	for _, f := range faults {
		n, path := root.get("outcomes"), strings.TrimPrefix(f.Field, "outcomes.")
		if f.Rule >= 0 {
			n, path = root.get("rules").items[f.Rule], f.Field
		}
		at, found := place(n, path)
		if echo(own, n, path, found) {
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

// echo says that a fault at a path in n only follows from faults that were
// found while reading: n has some, and they stand in the same field, or the
// field is missing.
func echo(own Faults, n *node, path string, found bool) bool {
	first, _, _ := strings.Cut(path, ".")
	if field := n.get(first); found && field != nil {
		return stands(own, field)
	}
	return stands(own, n)
}

// stands says whether one of fs, which are sorted, stands in n, up to where
// its last value starts.
func stands(fs Faults, n *node) bool {
	i := sort.Search(len(fs), func(i int) bool { return !before(fs[i].Line, fs[i].Column, n.line, n.column) })
	last := n.last()
	return i < len(fs) && !before(last.line, last.column, fs[i].Line, fs[i].Column)
}

// last is the node that n ends with.
func (n *node) last() *node {
	switch {
	case len(n.items) > 0:
		return n.items[len(n.items)-1].last()
	case len(n.entries) > 0:
		return n.entries[len(n.entries)-1].value.last()
	}
	return n
}

// before compares places.
func before(line, column, otherLine, otherColumn int) bool {
	return line < otherLine || line == otherLine && column < otherColumn
}
