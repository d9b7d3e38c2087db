package rulefile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

// linter collects the warnings about one file.
type linter struct {
	pass  *pass
	file  map[string]*node // the keys at the top of the file
	rules []rule.Rule
	nodes []*node // by rule

	list     []Warning
	silenced map[*node]bool // the entries of keys ignore that silenced a warning
	never    map[int]bool   // rules that never apply
}

// lint returns the warnings about rules, which have no faults.
func (p *pass) lint(file map[string]*node, rules []rule.Rule) []Warning {
	l := linter{pass: p, file: file, rules: rules, nodes: file["rules"].items, silenced: map[*node]bool{}, never: map[int]bool{}}
	if len(rules) == 0 {
		l.warn(none, "no-rules", file["rules"], "the file has no rules: every request gets the outcome %s", l.unmatched())
	}
	l.fileFullWidth()
	l.unused()
	for i := range rules {
		if rules[i].Mode == rule.Off {
			continue
		}
		when := cmp.Or(l.nodes[i].get("when"), &node{})
		l.contradiction(i)
		l.literals(i, when)
		l.fullWidth(i)
		l.decisions(i, when)
		l.missingElse(i)
		l.outage(i)
		l.silent(i)
		l.groups(i)
		l.size(i)
		l.estimates(i)
		l.forgotten(i)
	}
	l.dead()
	l.pointless()
	l.unneeded()
	slices.SortStableFunc(l.list, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column))
	})
	return l.list
}

// none stands for the file as a whole in place of the index of a rule.
const none = -1

// warn adds a warning about rule i at n, if no key ignore silences it.
func (l *linter) warn(i int, name string, n *node, format string, args ...any) {
	ignores := scalars(l.file["ignore"])
	if i != none {
		ignores = append(scalars(l.nodes[i].get("ignore")), ignores...)
	}
	for _, ignore := range ignores {
		if ignore.text == name {
			l.silenced[ignore] = true
			return
		}
	}
	f := &fault.Fault{Problem: fmt.Sprintf(format, args...), Place: l.pass.place(n.line, n.column)}
	if i != none {
		f.Rule = l.rules[i].Name
	}
	l.list = append(l.list, Warning{name, f})
}

// field returns the node of a key of rule i, or that of the rule without it.
func (l *linter) field(i int, key string) *node {
	if n := l.nodes[i].get(key); n != nil {
		return n
	}
	return l.nodes[i]
}

// unmatched returns the outcome of requests that no rule decides.
func (l *linter) unmatched() string {
	if n := l.file["unmatched"]; n != nil {
		return n.text
	}
	return rule.Allow
}

// unneeded warns of keys ignore that silence nothing.
func (l *linter) unneeded() {
	check := func(i int, n *node) {
		for _, ignore := range scalars(n) {
			if !l.silenced[ignore] && ignore.text != "unneeded-ignore" {
				l.warn(i, "unneeded-ignore", ignore, "ignore: there is no warning %s here", ignore.text)
			}
		}
	}
	for i, n := range l.nodes {
		if l.rules[i].Mode != rule.Off {
			check(i, n.get("ignore"))
		}
	}
	check(none, l.file["ignore"])
}

// koalaRow matches the outcomes that koala's calls answer with, even if no rule
// names them.
var koalaRow = regexp.MustCompile(`^koala-[0-9]+$`)

// unused warns of lists and outcomes that no rule uses.
func (l *linter) unused() {
	lists, outcomes := map[string]bool{}, map[string]bool{l.unmatched(): true}
	var note func(t rule.Test)
	note = func(t rule.Test) {
		function, arguments, parts := rule.FormOf(t)
		if function == "In" {
			lists[arguments[0]] = true
		}
		for _, part := range parts {
			note(part)
		}
	}
	for i := range l.rules {
		outcomes[l.rules[i].Then] = true
		for _, c := range l.rules[i].When {
			note(c.Test)
		}
	}
	warn := func(what string, n *node, used map[string]bool) {
		if n == nil {
			return
		}
		for _, e := range n.entries {
			if !used[e.key.text] && !koalaRow.MatchString(e.key.text) {
				l.warn(none, "unused", e.key, "no rule uses the %s %q", what, e.key.text)
			}
		}
	}
	warn("list", l.file["lists"], lists)
	warn("outcome", l.file["outcomes"], outcomes)
}
