package replay

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weirhq/weir/window"
)

// merger reads several readers at the same time, the earliest request first.
type merger struct {
	inputs []*input      // all
	heap   queue[*input] // those with an entry
	began  bool
	last   *input // the one whose entry was returned last
	err    error
}

// input is a reader with its next entry.
type input struct {
	Reader
	entry Entry
	index int // among the inputs
}

func (m *merger) add(r Reader, values int) {
	m.inputs = append(m.inputs, &input{Reader: r, entry: Entry{Values: make([]string, values)}, index: len(m.inputs)})
}

func (m *merger) Next(e *Entry) error {
	if m.err != nil {
		return m.err
	}
	if !m.began {
		m.began = true
		for _, in := range m.inputs {
			m.advance(in)
		}
	} else if m.last != nil {
		m.advance(m.last)
	}
	if m.err == nil && m.heap.Len() == 0 {
		m.err = io.EOF
	}
	if m.err != nil {
		return m.err
	}
	in := heap.Pop(&m.heap).(*input)
	values := e.Values
	*e = in.entry
	in.entry.Values, m.last = values, in // the texts stay valid until advance
	if len(in.entry.Values) != len(e.Values) {
		in.entry.Values = make([]string, len(e.Values))
	}
	return nil
}

// advance reads the next entry of in.
func (m *merger) advance(in *input) {
	before := in.entry.Time
	switch err := in.Next(&in.entry); {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		m.err = err
		return
	}
	if in.entry.Bad != nil {
		in.entry.Time = before // a bad line keeps its position
	}
	heap.Push(&m.heap, in)
}

func (m *merger) skipped() (n int64) {
	for _, in := range m.inputs {
		n += skippedOf(in.Reader)
	}
	return n
}

func (m *merger) Close() error {
	var errs []error
	for _, in := range m.inputs {
		errs = append(errs, in.Reader.Close())
	}
	return errors.Join(errs...)
}

// before reports whether the entry of in comes before that of other.
func (in *input) before(other *input) bool {
	if in.entry.Time != other.entry.Time {
		return in.entry.Time < other.entry.Time
	}
	return in.index < other.index
}

// sorter sorts entries by time that are out of order by at most a bound. It returns bad ones at once. If one is out of order
// by more, it reads all entries to count those that are, and returns an [OrderError].
type sorter struct {
	from   Reader
	bound  window.Instant
	read   *sorted // to read the next entry into
	newest window.Instant
	count  int64 // of entries read; keeps the order of equal times

	// Invariant: the entries of inOrder[first:] are in order. late has the entries that
	// are earlier than one before them.
	inOrder []*sorted
	first   int
	late    queue[*sorted]
	free    []*sorted // to use again
	err     error     // of from
}

func newSorter(r Reader, bound time.Duration, values int) *sorter {
	return &sorter{
		from: r, bound: window.Instant(bound.Microseconds()), read: &sorted{Entry: Entry{Values: make([]string, values)}},
		late: queue[*sorted]{before: (*sorted).before},
	}
}

func (s *sorter) Next(e *Entry) error {
	next, isLate := s.next()
	for s.err == nil && (next == nil || next.Time > s.newest-s.bound) {
		if s.err = s.from.Next(&s.read.Entry); s.err != nil {
			break
		}
		if s.read.Bad != nil { // has no time; a log of another format would fill the memory
			s.read.moveTo(e)
			return nil //nolint:nilerr // the entry has the error
		}
		if s.read.Time < s.newest-s.bound {
			s.err = s.outOfOrder()
			return s.err
		}
		s.keep()
		next, isLate = s.next()
	}
	if _, refused := errors.AsType[*OrderError](s.err); refused || next == nil {
		return s.err
	}
	if isLate {
		heap.Pop(&s.late)
	} else if s.first++; s.first == len(s.inOrder) {
		s.inOrder, s.first = s.inOrder[:0], 0
	} else if s.first > 1024 && s.first > len(s.inOrder)/2 {
		s.inOrder, s.first = slices.Delete(s.inOrder, 0, s.first), 0
	}
	next.moveTo(e)
	s.free = append(s.free, next)
	return nil
}

// next returns the first entry, or nil, and whether it is in s.late.
func (s *sorter) next() (next *sorted, isLate bool) {
	if s.first < len(s.inOrder) {
		next = s.inOrder[s.first]
	}
	if s.late.Len() > 0 && (next == nil || s.late.values[0].before(next)) {
		return s.late.values[0], true
	}
	return next, false
}

// keep keeps the entry that was read. Its texts stay valid, because the blocks of logs
// are not written to again.
func (s *sorter) keep() {
	kept := s.read
	kept.order = s.count
	s.count++
	if n := len(s.free); n > 0 {
		s.read, s.free = s.free[n-1], s.free[:n-1]
	} else {
		s.read = &sorted{Entry: Entry{Values: make([]string, len(kept.Values))}}
	}
	if kept.Time < s.newest {
		heap.Push(&s.late, kept)
		return
	}
	s.newest = kept.Time
	s.inOrder = append(s.inOrder, kept)
}

// outOfOrder reads all entries after one that is too late, and returns an error with the number
// of those that are. If reading fails, it returns that error instead.
func (s *sorter) outOfOrder() error {
	e := &OrderError{Log: s.read.Log, Line: s.read.Line, Time: s.read.Time.Time(), After: s.newest.Time(), Bound: time.Duration(s.bound) * time.Microsecond}
	back := window.Instant(0)
	for {
		if s.read.Bad == nil {
			if s.read.Time < s.newest-s.bound {
				e.Lines++
				back = max(back, s.newest-s.read.Time)
			}
			s.newest = max(s.newest, s.read.Time)
		}
		if err := s.from.Next(&s.read.Entry); err != nil {
			e.Back = time.Duration(back) * time.Microsecond
			if errors.Is(err, io.EOF) {
				return e
			}
			return err
		}
	}
}

func (s *sorter) skipped() int64 { return skippedOf(s.from) }

func (s *sorter) Close() error { return s.from.Close() }

// OrderError reports lines that are out of order by more than [Logs.Sort]: a replay of
// them in that order would count at times at which nothing happened.
type OrderError struct {
	Log         string // of the first such line
	Line        int64
	Time, After time.Time // of that line, and the latest before it

	Lines int64         // how many there are
	Back  time.Duration // the maximum time by which one is out of order
	Bound time.Duration // as in Logs.Sort
}

func (e *OrderError) Error() string {
	const form = "2006-01-02 15:04:05"
	return fmt.Sprintf("%s:%d: the time goes back from %s to %s; lines out of order by more than %v: %d, by up to %v",
		e.Log, e.Line, e.After.UTC().Format(form), e.Time.UTC().Format(form), e.Bound, e.Lines, e.Back)
}

// Sort returns a bound that sorts all lines, in whole seconds.
func (e *OrderError) Sort() time.Duration { return (e.Back + time.Second - 1).Truncate(time.Second) }

type sorted struct {
	Entry
	order int64
}

// moveTo moves the entry to e, and leaves the Values of e, to be written to again, and nothing else.
func (s *sorted) moveTo(e *Entry) { *e, s.Entry = s.Entry, Entry{Values: e.Values} }

// before reports whether s comes before other.
func (s *sorted) before(other *sorted) bool {
	if s.Time != other.Time {
		return s.Time < other.Time
	}
	return s.order < other.order
}

// queue implements [heap.Interface]: its first value is the one before all others.
type queue[T any] struct {
	values []T
	before func(a, b T) bool
}

func (q *queue[T]) Len() int           { return len(q.values) }
func (q *queue[T]) Swap(i, j int)      { q.values[i], q.values[j] = q.values[j], q.values[i] }
func (q *queue[T]) Less(i, j int) bool { return q.before(q.values[i], q.values[j]) }
func (q *queue[T]) Push(x any)         { q.values = append(q.values, x.(T)) }
func (q *queue[T]) Pop() any {
	n := len(q.values) - 1
	last := q.values[n]
	q.values = slices.Delete(q.values, n, n+1) // clears the slot
	return last
}
