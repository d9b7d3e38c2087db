// Package fault says what is wrong in a file that a person wrote, and where:
// the place, the problem, the line, and a caret under the place.
package fault

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Most is where the reading of a hopeless file stops to note more faults.
const Most = 1000

// Fault is one thing that is wrong in a file, or that its reader wants to warn
// of.
type Fault struct {
	File    string // as the caller named it; files that it names relative to the same place
	Line    int    // from 1
	Column  int    // from 1, in characters
	Rule    string // the rule's name; empty outside a rule and in one without name
	Problem string // what is wrong, and what was expected
	Source  string // the line
}

// maxShown is how many characters of a long line are shown on each side of
// the fault. Of a long problem twice as many bytes are, at each end.
const maxShown = 100

// Error is the place and the problem, the source line, and a caret under the
// place:
//
//	rules.yaml:4:5: rule "posts": unknown key "limt": did you mean "limit"?
//	    limt: 5
//	    ^
func (f Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", Printable(f.File), f.Line, f.Column)
	if f.Rule != "" {
		fmt.Fprintf(&b, "rule %q: ", brief(f.Rule))
	}
	b.WriteString(Printable(brief(f.Problem)))
	if strings.TrimSpace(f.Source) == "" {
		return b.String()
	}
	line, at := around(f.Source, f.Column-1)
	b.WriteByte('\n')
	b.WriteString(Printable(string(line)))
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

// Printable is text with a sign in place of each character that is no picture
// and no blank: what moves a terminal's cursor must not reach it.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// around is what of a line is shown for a fault at a character of it, and
// where in that the character is.
func around(line string, at int) ([]rune, int) {
	for ; at > maxShown && line != ""; at-- {
		_, size := utf8.DecodeRuneInString(line)
		line = line[size:]
	}
	// Four bytes are enough for any character.
	runes := []rune(line[:min(len(line), 4*2*maxShown)])
	return runes[:min(len(runes), 2*maxShown)], min(at, len(runes))
}

// Faults is everything that is wrong. It is never empty as an error.
type Faults []Fault

// Error is every fault, one after the other.
func (fs Faults) Error() string {
	texts := make([]string, len(fs))
	for i, f := range fs {
		texts[i] = f.Error()
	}
	return strings.Join(texts, "\n")
}

// Sort puts faults in the order in which a person would mend them: those in
// the file called name first.
func (fs Faults) Sort(name string) {
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
