package fault

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/printable"
)

// Fault is one thing that is wrong. *Fault is an error.
type Fault struct {
	// Path names the field, starting from the value that was checked: "quota",
	// "window.length", "rules[3].limit.pro", "requests[2].attributes.user". It is
	// empty if the fault concerns no single field, or if Problem names the field.
	Path string

	// Problem states what is wrong and what is expected instead.
	Problem string

	// Rule is the name of the rule that is wrong. It is empty outside a rule, and
	// in a rule without a name.
	Rule string

	// Place is the position of the fault in a text. It is zero if there is no
	// text.
	Place Place
}

// Place is a position in a text. The zero value is no position.
type Place struct {
	File   string // path of the file, as the caller named it; empty if the text is not a file
	Line   int    // from 1; 0 means no position
	Column int    // from 1, in characters
	Source string // the whole line
}

// String returns "file:line:column", or "line:column" without a file. It
// returns an empty string for the zero value.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return ""
	case p.File == "":
		return fmt.Sprintf("%d:%d", p.Line, p.Column)
	}
	return fmt.Sprintf("%s:%d:%d", printable.Text(p.File), p.Line, p.Column)
}

// Newf returns a fault of the field at path. The problem is formatted as by
// [fmt.Sprintf].
func Newf(path, format string, args ...any) *Fault {
	return &Fault{Path: path, Problem: fmt.Sprintf(format, args...)}
}

// In changes f.Path to be below path, and returns f. In("attributes") changes
// "user" to "attributes.user", and "[2]" to "attributes[2]". If f is nil, In returns
// nil.
func (f *Fault) In(path string) *Fault {
	switch {
	case f == nil:
	case f.Path == "":
		f.Path = path
	case f.Path[0] == '[':
		f.Path = path + f.Path
	default:
		f.Path = path + "." + f.Path
	}
	return f
}

// Error returns f as text. With a place, the text is [Fault.Summary], the source
// line, and a caret under the place:
//
//	rules.yaml:4:5: rule "posts": unknown key "limt": did you mean "limit"?
//	    limt: 5
//	    ^
//
// Without a place it is one line:
//
//	weir: window.length: 0s: want at least a microsecond
func (f *Fault) Error() string {
	if f.Place.Line == 0 {
		return "weir: " + f.Summary()
	}
	if strings.TrimSpace(f.Place.Source) == "" {
		return f.Summary()
	}
	return f.Summary() + "\n" + f.Place.excerpt()
}

// Summary returns f in one line: place, rule, path and problem, without the
// source line. A path that starts with the rule's index, "rules[3].limit", is cut to
// "limit" where the rule's name or the place identifies the rule.
func (f *Fault) Summary() string {
	var b strings.Builder
	if place := f.Place.String(); place != "" {
		b.WriteString(place + ": ")
	}
	if f.Rule != "" {
		fmt.Fprintf(&b, "rule %q: ", brief(f.Rule))
	}
	path := f.Path
	if f.Rule != "" || f.Place.Line > 0 {
		path = withoutRule(path)
	}
	if path != "" {
		b.WriteString(printable.Text(brief(path)) + ": ")
	}
	b.WriteString(printable.Text(brief(f.Problem)))
	return b.String()
}

// withoutRule returns path without a leading "rules[i]".
func withoutRule(path string) string {
	rest, ok := strings.CutPrefix(path, "rules[")
	if !ok {
		return path
	}
	if _, rest, ok = strings.Cut(rest, "]"); !ok {
		return path
	}
	return strings.TrimPrefix(rest, ".")
}

// maxShown is how many characters of a long line are shown on each side of
// the place. A long problem keeps twice as many bytes at each end.
const maxShown = 100

// excerpt returns the source line, cut to what is near the place, and a caret
// in the line below.
func (p Place) excerpt() string {
	line, at := context(p.Source, p.Column-1)
	var b strings.Builder
	b.WriteString(printable.Text(string(line)))
	b.WriteByte('\n')
	for _, r := range line[:at] {
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	b.WriteByte('^')
	return b.String()
}

// context returns the part of line around a character that is shown for a fault, and the index of
// the character in that part.
func context(line string, at int) ([]rune, int) {
	for ; at > maxShown && line != ""; at-- {
		_, size := utf8.DecodeRuneInString(line)
		line = line[size:]
	}
	// Four bytes are enough for any character.
	runes := []rune(line[:min(len(line), 4*2*maxShown)])
	return runes[:min(len(runes), 2*maxShown)], max(0, min(at, len(runes)))
}

// brief returns text without its middle if it is long, because a file in another format may have a
// value of some megabytes.
func brief(text string) string {
	if len(text) <= 4*maxShown {
		return text
	}
	head, tail := text[:2*maxShown], text[len(text)-2*maxShown:]
	return strings.ToValidUTF8(head, "") + "…" + strings.ToValidUTF8(tail, "")
}
