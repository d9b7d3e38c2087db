package rulefile

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/weirhq/weir/fault"
)

// compiled records the faults that [rule.New] found, each at its place in the file. It leaves
// out faults that follow from a rule that could not be read completely.
func (p *pass) compiled(err error, root *node) {
	faults := fault.Of(err)
	if len(faults) == 0 {
		p.fault(root, "%v", err)
		return
	}
	p.faults.Sort(p.name)
	own := slices.Clone(p.faults)
	if i := slices.IndexFunc(own, func(f *fault.Fault) bool { return f.Place.File != p.name }); i >= 0 {
		own = own[:i] // without those in list files
	}
	for _, f := range faults {
		n, path := p.checked(root, f.Path)
		at, found := place(n, path)
		if isConsequence(own, n, path, found) || n.hasUnknownKind() && path != "name" {
			continue
		}
		if at.kind == aTable && at.key != nil {
			at = at.key
		}
		p.note(at.line, at.column, f)
	}
}

// checked returns the rule or the table of outcomes in root that a path of
// [rule.New] starts with, and the rest of the path.
func (p *pass) checked(root *node, path string) (*node, string) {
	if rest, ok := strings.CutPrefix(path, "rules["); ok {
		index, field, _ := strings.Cut(rest, "].")
		if i, err := strconv.Atoi(index); err == nil {
			return p.item(root.get("rules"), i), field
		}
	}
	return root.get("outcomes"), strings.TrimPrefix(path, "outcomes.")
}

// place returns the node that path leads to from n, or the last one on the way.
// Names on the path may contain dots.
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

// isConsequence reports whether a fault at path in n only follows from faults that were found
// while reading, because they are in the same field or the field is missing.
func isConsequence(own fault.List, n *node, path string, found bool) bool {
	first, _, _ := strings.Cut(path, ".")
	if field := n.get(first); found && field != nil {
		return hasFault(own, field)
	}
	return hasFault(own, n)
}

// hasUnknownKind reports whether n is a rule with an unknown key and without limit and
// trigger. The unknown key may be one of these misspelt, so the kind of the rule, and the keys
// that it allows, are unknown.
func (n *node) hasUnknownKind() bool {
	if n.get("limit") != nil || n.get("trigger") != nil || n.label != "a rule" {
		return false
	}
	return slices.ContainsFunc(n.entries, func(e entry) bool { return !slices.Contains(ruleKeys, e.key.text) })
}

// hasFault reports whether one of fs, which are sorted, is between the start of n and the start
// of its last value.
func hasFault(fs fault.List, n *node) bool {
	i := sort.Search(len(fs), func(i int) bool { return !before(fs[i].Place.Line, fs[i].Place.Column, n.line, n.column) })
	last := n.last()
	return i < len(fs) && !before(last.line, last.column, fs[i].Place.Line, fs[i].Place.Column)
}

// last returns the last scalar or empty value within n.
func (n *node) last() *node {
	switch {
	case len(n.items) > 0:
		return n.items[len(n.items)-1].last()
	case len(n.entries) > 0:
		return n.entries[len(n.entries)-1].value.last()
	}
	return n
}

// before reports whether the first place is before the other one.
func before(line, column, otherLine, otherColumn int) bool {
	return line < otherLine || line == otherLine && column < otherColumn
}
