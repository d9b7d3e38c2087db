package rolling

import "time"

// A span has the cells of a view at one moment: those that start in [from, to),
// newest first. Every read of a window starts with a span.
type span[T Number] struct {
	newest   *cell[T] // nil when no cell is inside
	from, to int64
	now      int64
}

func (v View[T]) span(now int64) span[T] {
	c := v.w.newest.Load()
	// Another call may have read the clock after this one, and published first.
	now = max(now, c.start)
	running := now - now%v.step
	s := span[T]{from: running - (v.steps-1)*v.step, to: running + v.step, now: now}
	if v.complete {
		s.to = running
	}
	for c != nil && c.start >= s.to {
		c = c.older.Load()
	}
	s.newest = s.inside(c)
	return s
}

// older returns the cell after c in the span, or nil.
func (s *span[T]) older(c *cell[T]) *cell[T] { return s.inside(c.older.Load()) }

func (s *span[T]) inside(c *cell[T]) *cell[T] {
	if c == nil || c.start < s.from {
		return nil
	}
	return c
}

func (v View[T]) sum(now int64) (sum T) {
	s := v.span(now)
	for c := s.newest; c != nil; c = s.older(c) {
		sum += c.total()
	}
	return sum
}

func (v View[T]) count(now int64) (count int64) {
	s := v.span(now)
	for c := s.newest; c != nil; c = s.older(c) {
		count += c.hits()
	}
	return count
}

func (v View[T]) total(now int64) Bucket[T] {
	s := v.span(now)
	b := Bucket[T]{Start: v.start(s.from)}
	for c := s.newest; c != nil; c = s.older(c) {
		b.take(c)
	}
	return b
}

func (v View[T]) rate(now int64) float64 {
	s := v.span(now)
	var sum float64
	for c := s.newest; c != nil; c = s.older(c) {
		sum += float64(c.total())
	}
	lasted := min(s.to, s.now) - max(s.from, 0)
	return sum / time.Duration(max(lasted, v.step)).Seconds()
}

func (v View[T]) reduce(now int64, f func(Bucket[T])) {
	s := v.span(now)
	var room [64]*cell[T]
	cells := room[:0]
	for c := s.newest; c != nil; c = s.older(c) {
		cells = append(cells, c)
	}
	for start := s.from; start < s.to; start += v.step {
		b := Bucket[T]{Start: v.start(start)}
		for len(cells) > 0 && cells[len(cells)-1].start < start+v.step {
			b.take(cells[len(cells)-1])
			cells = cells[:len(cells)-1]
		}
		f(b)
	}
}

func (v View[T]) start(at int64) time.Time { return v.w.born.Add(time.Duration(at)) }
