package rulefile

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/token"

	"github.com/weirhq/weir/rule"
)

// value warns of plain values in a condition that look like addresses or patterns,
// or have full-width punctuation. Values of equal are meant as they are written,
// unless they have such punctuation: there, and in the other tests that say how text
// is compared, quotes show that it is meant.
func (l *linter) value(i int, attribute string, n *node) {
	switch n.kind {
	case aList:
		for _, item := range n.items {
			l.value(i, attribute, item)
		}
	case aTable:
		for _, e := range n.entries {
			switch e.key.text {
			case "not", "all":
				l.value(i, attribute, e.value)
			case "equal", "prefix", "suffix", "match":
				l.wideUnquoted(i, e.value)
			}
		}
	case aText:
		if n.text == "*" || l.wideText(i, n) {
			return
		}
		if instead := addressTest(n.text); instead != "" {
			l.warn(i, "literal-address", n, "%s is compared as text: for addresses write %s: %s", n.text, attribute, instead)
		} else if instead := patternTest(n.text); instead != "" {
			l.warn(i, "literal-pattern", n, "%s is compared as text: for a pattern write %s: %s", n.text, attribute, instead)
		}
	}
}

// harmless matches text that has no meaning to YAML, not even within brackets.
var harmless = regexp.MustCompile(`^[\pL\pN_./$^(+-][\pL\pN_./$^()+*=|@%&!? ~;<>-]*$`)

// testText returns a test as a rules file has it, with quotes if the text needs them.
func testText(key, text string) string {
	n := node{}
	n.scalar(text)
	if n.kind != aText || !harmless.MatchString(text) || token.IsNeedQuoted(text) || token.New(text, text, nil).Type != token.StringType {
		text = strconv.Quote(text)
	}
	return "{" + key + ": " + text + "}"
}

// addressTest returns the test to write for text that is a pattern of
// addresses, or "".
func addressTest(s string) string {
	if _, err := netip.ParseAddr(s); err != nil {
		if _, err := rule.Address(s); err != nil {
			return ""
		}
	}
	return testText("ip", s)
}

// regular matches parts of a regular expression that plain text rarely has.
var regular = regexp.MustCompile(`^\^|\.[*+]|\\[dwsDWSb./]|\[[^\]]+\][*+?]|\([^)]*\|[^)]*\)|[^\\]\$$`)

// statuses matches a class of HTTP statuses.
var statuses = regexp.MustCompile(`^[1-5][xX]{2}$`)

// patternTest returns the test to write for text that looks like a pattern, or
// "".
func patternTest(s string) string {
	inner := strings.Trim(s, "*")
	switch {
	case statuses.MatchString(s):
		return fmt.Sprintf("{from: %c00, to: %[1]c99}", s[0])
	case regular.MatchString(s):
		return testText("match", s)
	case !strings.Contains(s, "*"):
		return ""
	case inner == "" || strings.Contains(inner, "*"):
		return testText("match", "^"+strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, ".*")+"$")
	case s == inner+"*":
		return testText("prefix", inner)
	case s == "*"+inner:
		return testText("suffix", inner)
	}
	return testText("match", regexp.QuoteMeta(inner))
}
