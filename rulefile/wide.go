package rulefile

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// wide lists punctuation that input methods for Chinese and Japanese write instead of ASCII.
// In YAML it is text like any letter.
var wide = map[rune]struct{ name, instead string }{
	'，': {"full-width comma", `", " between entries`},
	'、': {"enumeration comma", `", " between entries`},
	'：': {"full-width colon", `": " after a key`},
	'“': {"curly quote", `the straight quote '"'`},
	'”': {"curly quote", `the straight quote '"'`},
	'＊': {"full-width asterisk", `"*"`},
	'［': {"full-width bracket", `"["`},
	'］': {"full-width bracket", `"]"`},
	'【': {"full-width bracket", `"["`},
	'】': {"full-width bracket", `"]"`},
	'｛': {"full-width brace", `"{"`},
	'｝': {"full-width brace", `"}"`},
}

// firstWide returns the name of the first character of s that is in [wide], and
// what to write in its place, as the end of a warning. It returns "" if s has
// none.
func firstWide(s string) string {
	for _, r := range s {
		if w, ok := wide[r]; ok {
			return fmt.Sprintf(`the %s "%c": write %s`, w.name, r, w.instead)
		}
	}
	return ""
}

// wideColon is the end of a fault about a key that has a full-width colon in it.
const wideColon = `: "：" is a full-width colon, write ": "`

// hasWideColon reports whether key has a full-width colon after a word.
func hasWideColon(key string) bool {
	return strings.IndexRune(key, '：') > 0
}

// wideKey matches the beginning of a line, or of an entry in brackets, up to the
// full-width colon after its first word.
var wideKey = regexp.MustCompile(`(?:^[\s-]*|[{,，]\s*)[A-Za-z0-9_.-]+：`)

// wideColonNear returns the place of a full-width colon after a key, in the
// line where the YAML parser stopped or in the one above it.
func (p *pass) wideColonNear(line int) (int, int, bool) {
	for _, n := range []int{line, line - 1} {
		if n < 1 || n > len(p.lines) {
			continue
		}
		if at := wideKey.FindStringIndex(p.lines[n-1]); at != nil {
			return n, utf8.RuneCountInString(p.lines[n-1][:at[1]]), true
		}
	}
	return 0, 0, false
}

// noBreak is the end of a fault about text with a no-break space, which editors show like a
// space and web pages have in examples.
const noBreak = ": there is a no-break space (U+00A0), write a plain space"

// noBreakNear returns the place of the first no-break space in the line where the YAML parser
// stopped or in the one above it.
func (p *pass) noBreakNear(line int) (int, int, bool) {
	for _, n := range []int{line, line - 1} {
		if n < 1 || n > len(p.lines) {
			continue
		}
		if before, _, found := strings.Cut(p.lines[n-1], "\u00a0"); found {
			return n, utf8.RuneCountInString(before) + 1, true
		}
	}
	return 0, 0, false
}

// fullWidth warns of punctuation from [wide] in the names of attributes that rule i
// counts by.
func (l *linter) fullWidth(i int) {
	n := l.nodes[i]
	for _, key := range []string{"per", "sum", "distinct", "together"} {
		l.wideNames(i, n.get(key))
	}
	if limit := n.get("limit"); limit != nil {
		l.wideNames(i, limit.get("by"))
	}
}

// wideNames warns of punctuation in the attributes of n: a name, a list of names,
// or tables of names as in per.
func (l *linter) wideNames(i int, n *node) {
	for _, item := range scalars(n) {
		if item.kind != aTable {
			l.wideText(i, item)
		}
		for _, e := range item.entries {
			l.wideText(i, e.key)
		}
	}
}

// wideUnquoted warns of punctuation in the values of n without quotes.
func (l *linter) wideUnquoted(i int, n *node) {
	for _, item := range scalars(n) {
		if !item.quoted {
			l.wideText(i, item)
		}
	}
}

// wideText reports whether a text contains such punctuation, and warns of it.
func (l *linter) wideText(i int, n *node) bool {
	why := firstWide(n.text)
	if why != "" {
		l.warn(i, "full-width", n, "%q contains %s", n.text, why)
	}
	return why != ""
}

// fileFullWidth warns of punctuation in what the file defines for all rules.
func (l *linter) fileFullWidth() {
	l.wideNames(none, l.file["addresses"])
	if lists := l.file["lists"]; lists != nil {
		for _, e := range lists.entries {
			l.wideUnquoted(none, e.value.get("values"))
		}
	}
}
