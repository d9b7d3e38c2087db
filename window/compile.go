package window

import "time"

// Compiled is a [Limit] ready for use: its methods do the counting. Make one
// with [Compile] or [MustCompile]. It is immutable and safe for concurrent use.
type Compiled struct {
	limit      Limit
	base       *Compiled // of a limit with a condition: counts up to it
	inner      *Compiled // of a limit with a condition: the limit without it
	onCalendar bool
}

// Compile makes l ready for use. It returns the error of [Limit.Validate] when
// l is invalid.
func Compile(l Limit) (*Compiled, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return compile(l), nil
}

// MustCompile is like [Compile] but panics when l is invalid. It is for limits
// that are written in a program.
func MustCompile(l Limit) *Compiled {
	c, err := Compile(l)
	if err != nil {
		panic(err)
	}
	return c
}

// compile makes a valid limit ready for use. The base of a limit with a
// condition passes here only: its precision can be above [MaxPrecision].
func compile(l Limit) *Compiled {
	c := &Compiled{limit: l, onCalendar: l.Window.Kind == KindCalendar}
	if l.After.Count > 0 {
		c.base, c.inner = compile(l.base()), compile(l.inner())
		c.onCalendar = c.base.onCalendar || c.inner.onCalendar
	}
	return c
}

// Limit returns the declaration that l was compiled from.
func (l *Compiled) Limit() Limit { return l.limit }

// Distinct reports whether l counts distinct members, so that its hits need a
// [Hits.Member].
func (l *Compiled) Distinct() bool { return l.limit.Measure == Distinct }

// OnCalendar reports whether l needs the time of day: its window is a calendar
// window, or the window of its condition is.
func (l *Compiled) OnCalendar() bool { return l.onCalendar }

// Capacity returns the most hits that fit at once: the quota, a bucket's burst,
// or [Unlimited].
func (l *Compiled) Capacity() int64 { return l.limit.capacity() }

// Base returns the limit that counts up to the condition of l, or nil when l
// has no condition ([Limit.After]).
func (l *Compiled) Base() *Compiled { return l.base }

// Inner returns l without its condition, or l itself when it has none.
func (l *Compiled) Inner() *Compiled {
	if l.inner == nil {
		return l
	}
	return l.inner
}

// Group returns the number of hits in a full group of a sliding window.
func (l *Compiled) Group() int64 { return l.group() }

// CellWidth returns the width of a cell of a cells window.
func (l *Compiled) CellWidth() time.Duration {
	return time.Duration(l.limit.Window.cellWidth()) * time.Microsecond
}
