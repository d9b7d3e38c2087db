package rulefile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/fault"
)

// fault records a fault at n.
func (p *pass) fault(n *node, format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if hasWideColon(n.label) && !strings.HasSuffix(problem, wideColon) {
		problem += wideColon
	}
	p.at(n.line, n.column, "%s", problem)
}

// at records a fault at a place in the rules file.
func (p *pass) at(line, column int, format string, args ...any) {
	p.note(line, column, &fault.Fault{Problem: fmt.Sprintf(format, args...), Rule: p.rule})
}

// maxFaults is the maximum number of faults that a reader records.
const maxFaults = 1000

// note records f at a place in the rules file, unless there are maxFaults.
func (p *pass) note(line, column int, f *fault.Fault) {
	if len(p.faults) >= maxFaults {
		return
	}
	f.Place = p.place(line, column)
	p.faults = append(p.faults, f)
}

// place returns a place in the rules file. It moves a place outside of the file, which a
// parser may report for the end, to the last line.
func (p *pass) place(line, column int) fault.Place {
	at := fault.Place{File: p.name, Line: max(1, min(line, len(p.lines))), Column: max(1, column)}
	if at.Line <= len(p.lines) {
		at.Source = p.lines[at.Line-1]
	}
	return at
}

// longest is the maximum number of bytes of an unknown word that a fault repeats.
const longest = 64

// unknown returns the problem of a word that is not one of names. It suggests the closest name
// or, if none is close, lists the names if they are few.
func unknown(what, got string, names []string) string {
	text := fmt.Sprintf("unknown %s %q", what, got)
	if len(got) > longest {
		text = fmt.Sprintf("unknown %s %q…", what, got[:longest])
	}
	if hasWideColon(got) {
		return text + wideColon
	}
	if strings.ContainsRune(got, '\u00a0') {
		return text + noBreak
	}
	if hint := fault.DidYouMean(got, names); hint != "" {
		return text + hint
	}
	switch {
	case len(names) == 0:
		return text + ": none is defined"
	case len(names) <= 24:
		return fmt.Sprintf("%s: want %s", text, either(names))
	}
	return text
}

// either returns names as a choice: a, b or c.
func either(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// sorted returns the keys of m in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
