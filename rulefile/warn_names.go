package rulefile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// usualAttributes are the attributes that logs and gates give to requests.
var usualAttributes = []string{"ip", "user", "action", "method", "path", "query", "status", "bytes", "referer", "agent", "host"}

// longestName is the maximum size of names that are compared with each other, in bytes.
const longestName = 64

// names warns of attributes that differ by their case from one that other rules or logs
// have, and of those that one rule names, and that differ by a letter from one that several do.
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
		u, lower := uses[name], strings.ToLower(name)
		on := l.rules[u.rule].Mode != rule.Off
		switch {
		case on && lower != name && (uses[lower] != nil || slices.Contains(usualAttributes, lower)):
			l.warn(u.rule, "similar-attribute", u.at, "the attribute %q is not %q: case matters", name, lower)
		case len(name) > longestName:
		case u.rules > 1:
			known = append(known, name)
		case on && !slices.Contains(usualAttributes, name) && firstWide(name) == "":
			rare = append(rare, name)
		}
	}
	for _, name := range rare {
		var likely []string
		for _, other := range known {
			if !l.compare.spend(8 + len(name)*len(other)/16) {
				return
			}
			if isTypo(name, other) {
				likely = append(likely, other)
			}
		}
		if hint := fault.DidYouMean(name, likely); hint != "" {
			u := uses[name]
			l.warn(u.rule, "similar-attribute", u.at, "no other rule has the attribute %q%s", name, hint)
		}
	}
}

// isTypo reports whether a name can be another one with a wrong letter: not if a whole word
// or a number differs, as in user_id and user_ip, or in key1 and key2. Words of three
// letters often differ by one, as uid and gid do.
func isTypo(name, other string) bool {
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("_-.", r) })
	}
	words, others := split(name), split(other)
	if lettersOf(name) == lettersOf(other) {
		return false
	}
	if len(words) != len(others) {
		return true // such as userid and user_id
	}
	for i, w := range words {
		if o := others[i]; w != o && (len(w) < 3 || len(w) == 3 && len(o) == 3 || fault.DidYouMean(w, []string{o}) == "") {
			return false
		}
	}
	return true
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
// written with an address in them, where text is read as addresses.
func (l *linter) repeated(i int, n *node, addresses bool) {
	if n == nil {
		return
	}
	seen := map[string]bool{}
	for _, item := range n.items {
		if item.isScalar() && seen[item.text] {
			l.warn(i, "duplicate-value", item, "%s is in the list twice", item.text)
		}
		seen[item.text] = true
		l.repeated(i, item, addresses)
	}
	for _, e := range n.entries {
		l.repeated(i, e.value, addresses || e.key.text == "ip")
	}
	if what := hostBits(n.text); what != "" && n.kind == aText && addresses {
		l.warn(i, "host-bits", n, "%s", what)
	}
}

// hostBits returns what a block of addresses with an address in it means, or "" for other
// text.
func hostBits(text string) string {
	block, err := netip.ParsePrefix(text)
	if err != nil || block == block.Masked() {
		return ""
	}
	return fmt.Sprintf("%s is the whole block %s: write %[2]s, or %s for the one address", text, block.Masked(), block.Addr())
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
		l.repeated(none, values, true)
		if file := e.value.get("file"); file != nil && l.pass.blocks[file] != "" {
			l.warn(none, "host-bits", file, "%s", l.pass.blocks[file])
		}
		if values != nil && len(values.items) == 0 && values.text == "" {
			l.warn(none, "empty-list", values, "the list %q has no values: no request is in it", e.key.text)
		}
	}
}
