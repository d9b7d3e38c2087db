package koalafile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is one thing that is wrong in a file of koala's, or, among
// [File.Warnings], one that weir takes otherwise than koala did.
type Fault struct {
	File    string // as the caller named it; dict files relative to the same place
	Line    int    // from 1
	Column  int    // from 1, in characters
	Rule    string // the rule's name, such as koala-501; empty outside a rule
	Problem string // what is wrong, and what was expected
	Source  string // the line
}

// maxShown is how many characters of a long line are shown on each side of
// the fault. Of a long problem twice as many are, at each end.
const maxShown = 100

// maxFaults and maxWarnings are where the reading of a hopeless file stops to
// note more.
const (
	maxFaults   = 1000
	maxWarnings = 10_000
)

// Error is the place and the problem, the source line, and a caret under the
// place:
//
//	koala_rule.conf:4:8: rule "koala-501": unknown method "cout": want …
//	rule : [cout] [uid=+] [time=5; count=1] [result=2; return=501]
//	        ^
func (f Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", strings.Map(printable, f.File), f.Line, f.Column)
	if f.Rule != "" {
		fmt.Fprintf(&b, "rule %q: ", f.Rule)
	}
	b.WriteString(strings.Map(printable, brief(f.Problem)))
	if strings.TrimSpace(f.Source) == "" {
		return b.String()
	}
	line, at := around(f.Source, f.Column-1)
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

// brief is text without the middle of what is too long to be read.
func brief(text string) string {
	runes := []rune(text)
	if len(runes) <= 4*maxShown {
		return text
	}
	return string(runes[:2*maxShown]) + "…" + string(runes[len(runes)-2*maxShown:])
}

// printable is r, or a sign in its place: what moves a terminal's cursor must
// not reach it.
func printable(r rune) rune {
	if r != '\t' && !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
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

// Faults is everything that is wrong, in the order of the file; faults in dict
// files come after those in the rule file. It is never empty as an error, and
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
	elsewhere := func(f Fault) int {
		if f.File == name {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(
			cmp.Compare(elsewhere(a), elsewhere(b)),
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
}
