package rulefile

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// value is a part of a file to write: a scalar, a list or a table.
type value interface {
	flow() string // returns the value in one line
}

type (
	scalar string // as YAML writes it
	list   []value
	table  []pair
	pair   struct {
		key   scalar
		value value
	}
)

// most is the maximum number of characters in a line. A value that is longer
// has a line for each of its parts.
const most = 150

func (s scalar) flow() string { return string(s) }

func (l list) flow() string {
	parts := make([]string, len(l))
	for i, v := range l {
		parts[i] = v.flow()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (t table) flow() string {
	parts := make([]string, len(t))
	for i, p := range t {
		parts[i] = string(p.key) + ": " + p.value.flow()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// write writes p in one line or in several.
func (p pair) write(b *strings.Builder, indent string) {
	line := indent + string(p.key) + ": " + p.value.flow()
	of, isTable := p.value.(table)
	items, isList := p.value.(list)
	switch {
	case utf8.RuneCountInString(line) <= most, len(of)+len(items) == 0:
		b.WriteString(line + "\n")
	case isTable:
		b.WriteString(indent + string(p.key) + ":\n")
		for _, p := range of {
			p.write(b, indent+"  ")
		}
	case isList:
		b.WriteString(indent + string(p.key) + ":\n")
		for _, v := range items {
			if t, ok := v.(table); ok {
				item(b, indent+"  ", t)
			} else {
				b.WriteString(indent + "  - " + v.flow() + "\n")
			}
		}
	}
}

// item writes t behind a dash.
func item(b *strings.Builder, indent string, t table) {
	var lines strings.Builder
	for _, p := range t {
		p.write(&lines, indent+"  ")
	}
	b.WriteString(indent + "- " + strings.TrimPrefix(lines.String(), indent+"  "))
}

// harmless matches text that has no meaning to YAML, not even within brackets.
// It still needs quotes when the reader or [token.IsNeedQuoted] takes it for
// something else.
var harmless = regexp.MustCompile(`^[\pL\pN_./$^(+-][\pL\pN_./$^()+*=|@%&!? ~;<>-]*$`)

// text returns s as a value that is read as text, in quotes when it would have
// another meaning without.
func text(s string) scalar {
	n := node{}
	n.scalar(s)
	if (n.kind == aNumber || n.kind == aBoolean) && n.text == s && !n.ambiguous() {
		return scalar(s)
	}
	return jsonText(s)
}

// jsonText returns s as a value that is read as text in JSON, where 5 and "5"
// differ.
func jsonText(s string) scalar {
	switch {
	case plain(s):
		return scalar(s)
	case !utf8.ValidString(s):
		return scalar(`"` + s + `"`) // which the reader refuses: YAML has no other bytes
	}
	return scalar(strconv.Quote(s))
}

// plain reports whether every reader of YAML takes s without quotes for text.
func plain(s string) bool {
	n := node{}
	n.scalar(s)
	return n.kind == aText && harmless.MatchString(s) && !token.IsNeedQuoted(s) && token.New(s, s, nil).Type == token.StringType
}

// texts returns several texts as a list.
func texts(all []string) value {
	l := make(list, len(all))
	for i, s := range all {
		l[i] = text(s)
	}
	return l
}

// number returns a key with a whole number.
func number(key scalar, n int64) pair { return pair{key, scalar(strconv.FormatInt(n, 10))} }
