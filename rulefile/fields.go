package rulefile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/window"
)

// The readers below accept nil for a missing key. They return the zero value for
// it, and for a value that is wrong.

// examples has a value for some keys whose values are tables, for faults.
var examples = map[string]string{
	"after": "{count: 30, window: day}",
	"ban":   "{for: 15m}",
}

// fields returns the values of a table with known keys, or nil when n is no
// table.
func (p *pass) fields(n *node, known []string) map[string]*node {
	if n.kind != aTable {
		want := "a table with keys such as " + known[0] + ":"
		if example := examples[n.label]; example != "" {
			want = "a table, such as " + example
		}
		switch {
		case n.kind == aText && hasWideColon(n.text):
			p.fault(n, "%s is %s%s", n.label, n, wideColon)
		case n.label == wholeFile: // which can be another one: a key, or a log
			p.fault(n, "the file is a text, want %s", want)
		default:
			p.fault(n, "%s is %s, want %s", n.label, n, want)
		}
		return nil
	}
	f := map[string]*node{}
	for _, e := range p.unique(n) {
		key := e.key.text
		f[key] = e.value
		if !slices.Contains(known, key) {
			p.fault(e.key, "%s", unknown("key", key, known))
		}
	}
	return f
}

// unique returns the entries of a table without those whose key is a
// repetition.
func (p *pass) unique(n *node) []entry {
	first := make(map[string]*node, len(n.entries))
	once := make([]entry, 0, len(n.entries))
	for _, e := range n.entries {
		switch before := first[e.key.text]; {
		case !e.key.isScalar():
			p.fault(e.key, "a key is %s, want text", e.key)
		case before != nil:
			p.fault(e.key, "key %q stands here twice, first in line %d: want it once", e.key.text, before.line)
		default:
			first[e.key.text] = e.key
			once = append(once, e)
		}
	}
	return once
}

// text returns the text of a scalar that is not empty.
func (p *pass) text(n *node) string {
	switch {
	case n == nil:
	case p.lacksQuotes(n):
		p.fault(n, "%s has a colon that reads as a key within brackets: write it in quotes", n.label)
	case !n.isScalar() || n.text == "":
		p.fault(n, "%s is %s, want text", n.label, n.orEmpty())
	case n.ambiguous():
		p.fault(n, "%s: %s is a number that starts with 0, which readers of YAML take differently: write it in quotes", n.label, n.raw)
	default:
		return n.text
	}
	return ""
}

// attribute returns the name of an attribute. example is one for faults.
func (p *pass) attribute(n *node, example string) string {
	if n != nil && !n.isScalar() && !p.lacksQuotes(n) {
		p.fault(n, "%s is %s, want the name of one attribute, such as %s", n.label, n, example)
		return ""
	}
	return p.text(n)
}

// lacksQuotes reports whether n is a table only because the YAML parser takes
// the colon in a value such as fe80::1 for the end of a key, as it does within
// brackets.
func (p *pass) lacksQuotes(n *node) bool {
	if n.kind != aTable || len(n.entries) == 0 {
		return false
	}
	if len(p.faults) >= maxFaults { // the answer changes nothing, and the line can be the whole file
		return false
	}
	line, column, from := p.lines[n.line-1], 1, 0
	if p.last.line == n.line && p.last.column <= n.column {
		column, from = p.last.column, p.last.at
	}
	for at := range line[from:] {
		if column == n.column {
			p.last = spot{n.line, column, from + at}
			rest, ok := strings.CutPrefix(line[from+at:], n.entries[0].key.text+":")
			return ok && rest != "" && rest[0] != ' '
		}
		column++
	}
	return false
}

// texts returns a list of texts. One text without a list counts as a list of
// one.
func (p *pass) texts(n *node) []string {
	if n == nil {
		return nil
	}
	if n.kind != aList {
		if s := p.text(n); s != "" {
			return []string{s}
		}
		return nil
	}
	if len(n.items) == 0 {
		p.fault(n, "%s is an empty list, want at least one in it", n.label)
	}
	all := make([]string, 0, len(n.items))
	for _, item := range n.items {
		if s := p.text(item); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// whole returns a whole number from least to most.
func (p *pass) whole(n *node, least, most int64) int64 {
	if n == nil {
		return 0
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	switch {
	case n.kind == aText && n.quoted && err == nil:
		p.fault(n, "%s is %q, which is text: write %s without quotes", n.label, n.text, n.text)
	case n.kind != aNumber:
		p.fault(n, "%s is %s, want a whole number, such as 5", n.label, n)
	case n.ambiguous():
		p.fault(n, "%s is %s: write it without the leading 0", n.label, n.raw)
	case err != nil && !integers.MatchString(n.raw):
		p.fault(n, "%s is %s, want a whole number", n.label, n.raw)
	case err != nil || v > most || v < least:
		p.fault(n, "%s is %s, want a whole number from %d to %s", n.label, n.raw, least, limitText(most))
	default:
		return v
	}
	return 0
}

// percent reads a percentage, such as 80%.
func (p *pass) percent(n *node) int {
	if n == nil {
		return 0
	}
	digits, ok := strings.CutSuffix(n.text, "%")
	v, err := strconv.ParseUint(digits, 10, 7)
	if n.kind != aText || !ok || err != nil || v < 1 || v > 100 {
		p.fault(n, "%s is %s, want a percentage from 1%% to 100%%, such as 80%%", n.label, n)
		return 0
	}
	return int(v)
}

// limitText returns n as text, and 2^53-1 for the largest count.
func limitText(n int64) string {
	if n == window.MaxHits {
		return "2^53-1"
	}
	return strconv.FormatInt(n, 10)
}

// number returns any number.
func (p *pass) number(n *node) float64 {
	v, err := strconv.ParseFloat(n.text, 64)
	switch {
	case n.kind == aText && n.quoted && err == nil:
		p.fault(n, "%s is %q, which is text: write %s without quotes", n.label, n.text, n.text)
	case n.kind != aNumber || err != nil:
		p.fault(n, "%s is %s, want a number", n.label, n)
	default:
		return v
	}
	return 0
}

// yes returns a boolean.
func (p *pass) yes(n *node) bool {
	if n == nil {
		return false
	}
	if n.kind != aBoolean {
		p.fault(n, "%s is %s, want true or false", n.label, n)
	}
	return n.text == "true"
}

// choice returns the index in names of the word in n, and 0 when the word is
// none of them.
func (p *pass) choice(n *node, names []string) int {
	if n == nil {
		return 0
	}
	if i := slices.Index(names, n.text); i >= 0 {
		return i
	}
	if n.isScalar() {
		p.fault(n, "%s", unknown(n.label, n.text, names))
	} else {
		p.fault(n, "%s is %s, want %s", n.label, n, either(names))
	}
	return 0
}

// orEmpty returns n.String(), and "empty" for an empty text.
func (n *node) orEmpty() string {
	if n.kind == aText && n.text == "" {
		return "empty"
	}
	return n.String()
}
