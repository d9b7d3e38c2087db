package rulewriter

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"

	"github.com/weirhq/weir/internal/printable"
)

// value is a part of a file: a scalar, a list or a table.
type value interface {
	flow() string // returns the value in one line
}

type (
	scalar string // as YAML writes it
	list   []value
	table  []pair
	pair   struct {
		key     scalar
		value   value
		comment string // above the pair, unless it is within brackets
	}
)

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

// add adds a pair to t if set is true.
func (t *table) add(set bool, key scalar, v value) {
	if set {
		*t = append(*t, pair{key: key, value: v})
	}
}

// count adds a number to t if it is greater than 0.
func (t *table) count(key scalar, n int64) { t.add(n > 0, key, number(n)) }

// layout writes values in lines of at most 150 characters. A value that is longer
// has a line for each of its parts.
type layout struct{ strings.Builder }

const longest = 150

// comment writes lines as comments.
func (w *layout) comment(indent, lines string) {
	if lines == "" {
		return
	}
	lines = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(lines, "\ufffd"))
	for line := range strings.SplitSeq(strings.TrimRight(lines, "\n"), "\n") {
		w.WriteString(strings.TrimRight(indent+"# "+printable.Text(line), " \t") + "\n")
	}
}

// section writes one of the tables at the top of the file.
func (w *layout) section(key string, t table) {
	if len(t) == 0 {
		return
	}
	if w.Len() > 0 {
		w.WriteByte('\n')
	}
	w.WriteString(key + ":\n")
	w.table("  ", t)
}

func (w *layout) table(indent string, t table) {
	for _, p := range t {
		w.pair(indent, p)
	}
}

// pair writes p in one line or in several.
func (w *layout) pair(indent string, p pair) {
	w.comment(indent, p.comment)
	line := indent + string(p.key) + ": " + p.value.flow()
	of, _ := p.value.(table)
	items, _ := p.value.(list)
	if utf8.RuneCountInString(line) <= longest || len(of)+len(items) == 0 {
		w.WriteString(line + "\n")
		return
	}
	w.WriteString(indent + string(p.key) + ":\n")
	w.table(indent+"  ", of)
	for _, v := range items {
		w.item(indent+"  ", v)
	}
}

// item writes v after a dash.
func (w *layout) item(indent string, v value) {
	var lines layout
	if t, ok := v.(table); ok {
		lines.table(indent+"  ", t)
	} else {
		lines.WriteString(v.flow() + "\n")
	}
	w.WriteString(indent + "- " + strings.TrimPrefix(lines.String(), indent+"  "))
}

var (
	// harmless matches text that has no meaning to YAML, not even within brackets.
	// It still needs quotes if a reader takes it for something else.
	harmless = regexp.MustCompile(`^[\pL\pN_./$^(+-][\pL\pN_./$^()+*=|@%&!? ~;<>-]*$`)

	// numeric matches text that some YAML reader reads as a number, and canonical a number
	// or a boolean that rules files read as this text.
	numeric   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^0[xob]`)
	canonical = regexp.MustCompile(`^(true|false|0|-?[1-9][0-9]*|-?(0|[1-9][0-9]{0,8})\.[0-9]{0,5}[1-9])$`)
)

// Text returns s as a value of a rules file or a test file, in one line.
func Text(s string) string { return string(text(s)) }

// text returns s as a value that a rules file reads as text, in quotes if it would have
// another meaning without.
func text(s string) scalar {
	if canonical.MatchString(s) {
		return scalar(s)
	}
	return jsonText(s)
}

// jsonText returns s as a value that is read as text in JSON, where 5 and "5" differ.
func jsonText(s string) scalar {
	switch {
	case harmless.MatchString(s) && !numeric.MatchString(s) && !token.IsNeedQuoted(s) && token.New(s, s, nil).Type == token.StringType:
		return scalar(s)
	case !utf8.ValidString(s):
		return scalar(`"` + s + `"`) // which the reader refuses, because YAML has no other bytes
	}
	return scalar(strconv.Quote(s))
}

// texts returns several texts as a list.
func texts(all []string) list {
	l := make(list, len(all))
	for i, s := range all {
		l[i] = text(s)
	}
	return l
}

// number returns a whole number.
func number(n int64) scalar { return scalar(strconv.FormatInt(n, 10)) }

// body returns JSON as YAML with the same keys in the same order.
func body(src []byte) value {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	return jsonValue(d)
}

// jsonValue returns the next value of d. [rule.New] has checked that there is one.
func jsonValue(d *json.Decoder) value {
	switch t, _ := d.Token(); t := t.(type) {
	case json.Delim:
		l, of := list{}, table{}
		for d.More() {
			if t == '[' {
				l = append(l, jsonValue(d))
				continue
			}
			key, _ := d.Token()
			name, _ := key.(string)
			of.add(true, jsonText(name), jsonValue(d))
		}
		_, _ = d.Token()
		if t == '[' {
			return l
		}
		return of
	case string:
		return jsonText(t)
	case json.Number:
		return scalar(t)
	case bool:
		return scalar(strconv.FormatBool(t))
	}
	return scalar("null")
}

// sorted returns the keys of m in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
