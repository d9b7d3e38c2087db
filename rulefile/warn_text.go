package rulefile

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/weirhq/weir/rule"
)

// literals warns of plain values below n that look like addresses or patterns.
// Values of equal are meant as they are written.
func (l *linter) literals(i int, when *node) {
	if when != nil {
		for _, e := range when.entries {
			l.literal(i, e.key.text, e.value)
		}
	}
}

func (l *linter) literal(i int, attribute string, n *node) {
	switch n.kind {
	case aList:
		for _, item := range n.items {
			l.literal(i, attribute, item)
		}
	case aTable:
		for _, e := range n.entries {
			if e.key.text == "not" || e.key.text == "all" {
				l.literal(i, attribute, e.value)
			}
		}
	case aText:
		if n.text == "*" || firstWide(n.text) != "" { // another warning tells about those
			return
		}
		if instead := addressTest(n.text); instead != "" {
			l.warn(i, "literal-address", n, "%s is compared as text: for addresses write %s: %s", n.text, attribute, instead)
		} else if instead := patternTest(n.text); instead != "" {
			l.warn(i, "literal-pattern", n, "%s is compared as text: for a pattern write %s: %s", n.text, attribute, instead)
		}
	}
}

// addressTest returns the test to write for text that is a pattern of
// addresses, or "".
func addressTest(s string) string {
	if _, err := netip.ParseAddr(s); err != nil {
		if _, err := rule.Address(s); err != nil {
			return ""
		}
	}
	return table{{"ip", text(s)}}.flow()
}

// regular matches parts of a regular expression that plain text rarely has.
var regular = regexp.MustCompile(`^\^|\.[*+]|\\[dwsDWSb./]|\[[^\]]+\][*+?]|\([^)]*\|[^)]*\)|[^\\]\$$`)

// patternTest returns the test to write for text that looks like a pattern, or
// "".
func patternTest(s string) string {
	inner := strings.Trim(s, "*")
	switch {
	case regular.MatchString(s):
		return table{{"match", text(s)}}.flow()
	case !strings.Contains(s, "*"):
		return ""
	case inner == "" || strings.Contains(inner, "*"):
		return table{{"match", text("^" + strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, ".*") + "$")}}.flow()
	case s == inner+"*":
		return table{{"prefix", text(inner)}}.flow()
	case s == "*"+inner:
		return table{{"suffix", text(inner)}}.flow()
	}
	return table{{"match", text(regexp.QuoteMeta(inner))}}.flow()
}
