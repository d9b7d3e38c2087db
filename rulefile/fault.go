package rulefile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is one thing that is wrong in a rules file or in a list file.
type Fault struct {
	File    string // as the caller named it; list files relative to the same place
	Line    int    // from 1
	Column  int    // from 1, in characters
	Rule    string // the rule's name; empty outside a rule and in one without name
	Problem string // what is wrong, and what was expected
	Source  string // the line
}

// maxShown is how many characters of a long line are shown on each side of
// the fault. Of a long problem twice as many bytes are, at each end.
const maxShown = 100

// maxFaults is where the reading of a hopeless file stops to note more.
const maxFaults = 1000

// Error is the place and the problem, the source line, and a caret under the
// place:
//
//	rules.yaml:4:5: rule "posts": unknown key "limt": did you mean "limit"?
//	    limt: 5
//	    ^
func (f Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", strings.Map(printable, f.File), f.Line, f.Column)
	if f.Rule != "" {
		fmt.Fprintf(&b, "rule %q: ", brief(f.Rule))
	}
	b.WriteString(strings.Map(printable, brief(f.Problem)))
	if strings.TrimSpace(f.Source) == "" {
		return b.String()
	}
	line, at := part(f.Source, f.Column-1)
	b.WriteByte('\n')
	b.WriteString(strings.Map(printable, string(line)))
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

// brief is text without the middle of what is too long to be read: a file that
// is no rules file at all may be one value of some megabytes.
func brief(text string) string {
	if len(text) <= 4*maxShown {
		return text
	}
	head, tail := text[:2*maxShown], text[len(text)-2*maxShown:]
	return strings.ToValidUTF8(head, "") + "…" + strings.ToValidUTF8(tail, "")
}

// printable is r, or a sign in its place: what moves a terminal's cursor must
// not reach it.
func printable(r rune) rune {
	if r != '\t' && !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
}

// part is what of a line is shown for a fault at a character of it, and where
// in that the character is.
func part(line string, at int) ([]rune, int) {
	from := 0
	for skip := at - maxShown; skip > 0 && from < len(line); skip-- {
		_, size := utf8.DecodeRuneInString(line[from:])
		from, at = from+size, at-1
	}
	// Four bytes are enough for any character.
	line = line[from:min(len(line), from+4*2*maxShown)]
	shown := []rune(strings.ToValidUTF8(line, ""))
	return shown[:min(len(shown), 2*maxShown)], min(at, len(shown))
}

// Faults is everything that is wrong, in the order of the file; faults in list
// files come after those in the rules file. It is never empty as an error, and
// stops at a thousand.
type Faults []Fault

// Error is every fault, one after the other.
func (fs Faults) Error() string {
	texts := make([]string, len(fs))
	for i, f := range fs {
		texts[i] = f.Error()
	}
	return strings.Join(texts, "\n")
}

// sort puts faults in the order in which a person would mend them.
func (fs Faults) sort(name string) {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(
			cmp.Compare(elsewhere(a, name), elsewhere(b, name)),
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
}

func elsewhere(f Fault, name string) int {
	if f.File == name {
		return 0
	}
	return 1
}

// fault notes that something is wrong at n.
func (p *pass) fault(n *node, format string, args ...any) {
	p.at(n.line, n.column, format, args...)
}

// at notes that something is wrong at a place in the rules file. A place that
// lies outside, as a parser's idea of the end may, moves to the last line.
func (p *pass) at(line, column int, format string, args ...any) {
	if len(p.faults) >= maxFaults {
		return
	}
	line = max(1, min(line, len(p.lines)))
	source := ""
	if line <= len(p.lines) {
		source = p.lines[line-1]
	}
	p.faults = append(p.faults, Fault{
		File: p.name, Line: line, Column: max(1, column), Rule: p.rule,
		Problem: fmt.Sprintf(format, args...), Source: source,
	})
}
