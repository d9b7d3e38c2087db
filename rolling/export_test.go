package rolling

import "time"

// The twins of the methods that read a clock, for tests that tell the time
// themselves: now is since the window was made.

func (w *Window[T]) AddAt(now time.Duration, v T)               { w.add(int64(now), v) }
func (v View[T]) SumAt(now time.Duration) T                     { return v.sum(int64(now)) }
func (v View[T]) CountAt(now time.Duration) int64               { return v.count(int64(now)) }
func (v View[T]) TotalAt(now time.Duration) Bucket[T]           { return v.total(int64(now)) }
func (v View[T]) RateAt(now time.Duration) float64              { return v.rate(int64(now)) }
func (v View[T]) ReduceAt(now time.Duration, f func(Bucket[T])) { v.reduce(int64(now), f) }

// Writer is an Add that has found its bucket and fallen asleep.
func (w *Window[T]) Writer() func(v T) { return w.newest.Load().add }

// Kept is how many cells the window keeps alive.
func (w *Window[T]) Kept() int {
	kept := 0
	for c := w.newest.Load(); c != nil; c = c.older.Load() {
		kept++
	}
	return kept
}
