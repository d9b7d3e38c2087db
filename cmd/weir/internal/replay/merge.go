package replay

import (
	"container/heap"
	"errors"
	"io"
	"slices"
	"strings"
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
		in.entry.Time = before // a bad line stays in its place
	}
	heap.Push(&m.heap, in)
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

// sorter sorts entries that are out of order by at most a bound.
type sorter struct {
	from   Reader
	bound  window.Instant
	read   Entry
	newest window.Instant
	heap   queue[sorted]
	count  int64 // of entries read; keeps the order of equal times
	err    error // of from
}

func newSorter(r Reader, bound time.Duration, values int) *sorter {
	return &sorter{
		from: r, bound: window.Instant(bound.Microseconds()), read: Entry{Values: make([]string, values)},
		heap: queue[sorted]{before: sorted.before},
	}
}

func (s *sorter) Next(e *Entry) error {
	for s.err == nil && (s.heap.Len() == 0 || s.heap.values[0].Time > s.newest-s.bound) {
		if s.err = s.from.Next(&s.read); s.err != nil {
			break
		}
		kept := sorted{Entry: s.read, order: s.count}
		s.count++
		kept.Text, kept.Values = strings.Clone(s.read.Text), slices.Clone(s.read.Values)
		for i, v := range kept.Values {
			kept.Values[i] = strings.Clone(v)
		}
		if kept.Bad != nil {
			kept.Bad = errors.New(kept.Bad.Error())
			kept.Time = s.newest
		}
		s.newest = max(s.newest, kept.Time)
		heap.Push(&s.heap, kept)
	}
	if s.heap.Len() == 0 {
		return s.err
	}
	*e = heap.Pop(&s.heap).(sorted).Entry
	return nil
}

func (s *sorter) Close() error { return s.from.Close() }

type sorted struct {
	Entry
	order int64
}

// before reports whether s comes before other.
func (s sorted) before(other sorted) bool {
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
	q.values = slices.Delete(q.values, n, n+1) // clears the place
	return last
}
