package rolling

import "time"

// Twins of the methods that read a clock, for tests with their own time. now is the
// age of the window.

func (v View[T]) SumAt(now time.Duration) T                     { return v.sum(int64(now)) }
func (v View[T]) CountAt(now time.Duration) int64               { return v.count(int64(now)) }
func (v View[T]) TotalAt(now time.Duration) Bucket[T]           { return v.total(int64(now)) }
func (v View[T]) RateAt(now time.Duration) float64              { return v.rate(int64(now)) }
func (v View[T]) ReduceAt(now time.Duration, f func(Bucket[T])) { v.reduce(int64(now), f) }

func (w *Window[T]) AddAt(now time.Duration, v T) {
	if c := w.bucket(int64(now), v); c != nil {
		c.add(v)
	}
}

// Writer is a call of Add that sleeps after it has found its bucket.
func (w *Window[T]) Writer() func(v T) { return w.newest.Load().add }

// Kept returns the number of cells in the list.
func (w *Window[T]) Kept() int {
	kept := 0
	for c := w.newest.Load(); c != nil; c = c.older.Load() {
		kept++
	}
	return kept
}
