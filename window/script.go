package window

import "time"

// A shared store keeps states by a script of its own. These are the numbers
// that it needs and that a limit's fields do not give.

// Group is how many hits a full group of a sliding window holds.
func (l *Limit) Group() int64 { return l.group() }

// CellWidth is the width of a cell of a cells window.
func (w *Window) CellWidth() time.Duration { return time.Duration(w.cellWidth()) * time.Microsecond }

// Parts are what a limit with a condition keeps two states for: the limit that
// counts up to the condition, and the limit without it.
func (l *Limit) Parts() (base, inner Limit) { return l.base(), l.inner() }
