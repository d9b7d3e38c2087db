package rulefile

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// usualAttributes are the attributes that logs and gates give to requests.
var usualAttributes = []string{"ip", "user", "action", "method", "path", "query", "status", "bytes", "referer", "agent", "host"}

// mostNames is the maximum number of names that are compared with each other.
const mostNames = 1000

// names warns of attributes that no other rule names, and that differ by a letter or by
// their case from one that others do.
func (l *linter) names() {
	type use struct {
		at    *node // the first place
		rule  int
		rules int // how many rules have the name
	}
	uses := map[string]*use{}
	for i, n := range l.nodes {
		seen := map[string]bool{}
		for _, at := range attributesOf(n) {
			if seen[at.text] {
				continue
			}
			seen[at.text] = true
			if uses[at.text] == nil {
				uses[at.text] = &use{at: at, rule: i}
			}
			uses[at.text].rules++
		}
	}
	var rare, known []string
	for _, name := range sorted(uses) {
		if uses[name].rules > 1 {
			known = append(known, name)
		} else if l.rules[uses[name].rule].Mode != rule.Off {
			rare = append(rare, name)
		}
	}
	if len(rare) > mostNames || len(known) > mostNames {
		return
	}
	for _, name := range rare {
		u, lower := uses[name], strings.ToLower(name)
		hint := ""
		switch {
		case lower != name && (uses[lower] != nil || slices.Contains(usualAttributes, lower)):
			hint = fault.DidYouMean(lower, []string{lower}) + " Case matters"
		case len(name) > 2 && firstWide(name) == "":
			likely := slices.DeleteFunc(slices.Clone(known), func(other string) bool {
				return lettersOf(name) == lettersOf(other) // such as key1 and key2
			})
			hint = fault.DidYouMean(name, likely)
		}
		if hint != "" {
			l.warn(u.rule, "similar-attribute", u.at, "no other rule has the attribute %q%s", name, hint)
		}
	}
}

// attributesOf returns the places in a rule that name attributes.
func attributesOf(n *node) (list []*node) {
	if when := n.get("when"); when != nil {
		for _, e := range when.entries {
			list = append(list, e.key)
		}
	}
	fields := []*node{n.get("per"), n.get("sum"), n.get("distinct"), n.get("together")}
	if limit := n.get("limit"); limit != nil {
		fields = append(fields, limit.get("by"))
	}
	for _, field := range fields {
		for _, item := range scalars(field) {
			if item.kind == aText {
				list = append(list, item)
			}
			for _, e := range item.entries {
				list = append(list, e.key)
			}
		}
	}
	return list
}

// lettersOf returns s without its digits.
func lettersOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// repeated warns of values that are twice in a list, and of blocks of addresses that are
// written with an address in them.
func (l *linter) repeated(i int, n *node) {
	if n == nil {
		return
	}
	seen := map[string]bool{}
	for _, item := range n.items {
		if item.isScalar() && seen[item.text] {
			l.warn(i, "duplicate-value", item, "%s is in the list twice", item.text)
		}
		seen[item.text] = true
		l.repeated(i, item)
	}
	for _, e := range n.entries {
		l.repeated(i, e.value)
	}
	block, err := netip.ParsePrefix(n.text)
	if n.kind != aText || err != nil || block == block.Masked() {
		return
	}
	l.warn(i, "host-bits", n, "%s is the whole block %s: write %[2]s, or %s for the one address", n.text, block.Masked(), block.Addr())
}

// whole warns of what the file says for all rules.
func (l *linter) whole() {
	enforced, shadows := false, 0
	zoned := false
	for i := range l.rules {
		r := &l.rules[i]
		calendar := r.Window.Kind == window.KindCalendar || r.After.Window.Kind == window.KindCalendar
		zoned = zoned || calendar && l.nodes[i].get("timezone") == nil
		if n := l.nodes[i].get("timezone"); n != nil && !calendar && r.Mode != rule.Off {
			l.warn(i, "unused", n, "no window of the rule follows the calendar: its timezone has no effect")
		}
		if r.Kind() == rule.KindLimit || r.Kind() == rule.KindVerdict {
			enforced = enforced || r.Mode == rule.Enforce
			if r.Mode == rule.Shadow {
				shadows++
			}
		}
	}
	if n := l.file["timezone"]; n != nil && !zoned && len(l.rules) > 0 {
		l.warn(none, "unused", n, "no window follows the calendar in this time zone: it has no effect")
	}
	if shadows > 1 && !enforced {
		l.warn(none, "all-shadow", l.file["rules"], "all limits and verdicts (%d) are in shadow mode: no request is denied", shadows)
	}
	lists := l.file["lists"]
	if lists == nil {
		return
	}
	for _, e := range lists.entries {
		values := e.value.get("values")
		l.repeated(none, values)
		if values != nil && len(values.items) == 0 && values.text == "" {
			l.warn(none, "empty-list", values, "the list %q has no values: no request is in it", e.key.text)
		}
	}
}
