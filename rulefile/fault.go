package rulefile

import (
	"fmt"

	"github.com/weirhq/weir/fault"
)

// Fault is one thing that is wrong in a rules file or in a list file.
type Fault = fault.Fault

// Faults is everything that is wrong, in the order of the file; faults in list
// files come after those in the rules file. It is never empty as an error, and
// stops at a thousand.
type Faults = fault.Faults

// fault notes that something is wrong at n.
func (p *pass) fault(n *node, format string, args ...any) {
	p.at(n.line, n.column, format, args...)
}

// at notes that something is wrong at a place in the rules file. A place that
// lies outside, as a parser's idea of the end may, moves to the last line.
func (p *pass) at(line, column int, format string, args ...any) {
	if len(p.faults) >= fault.Most {
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
