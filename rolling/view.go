package rolling

import (
	"errors"
	"fmt"
)

// A View reads a part of a window, in steps of one or more buckets. [Window.All]
// returns the view of all buckets, and [Window.View] one of the last steps. A View
// is a small value that holds no hits, and you can copy and keep it. The zero View
// is empty. All methods are safe for concurrent use and take no lock. Those that
// read hits read the clock once.
type View[T Number] struct {
	w        *Window[T]
	steps    int64
	step     int64 // nanoseconds
	complete bool  // without the running step
}

// All returns the view of the whole window. Each step is a bucket.
func (w *Window[T]) All() View[T] { return View[T]{w: w, steps: w.n, step: w.width} }

// View returns a view of the running step and the steps-1 steps before it, each
// with the given number of buckets. Steps start at multiples of their length after
// the creation of the window. It returns an error if steps or buckets is below 1,
// or if their product is more than the buckets of the window.
func (w *Window[T]) View(steps, buckets int) (View[T], error) {
	var faults []error
	if steps < 1 {
		faults = append(faults, fmt.Errorf("rolling: view of %d steps: take 1 or more", steps))
	}
	if buckets < 1 {
		faults = append(faults, fmt.Errorf("rolling: view in steps of %d buckets: take 1 or more", buckets))
	}
	if len(faults) == 0 && int64(steps) > w.n/int64(buckets) {
		faults = append(faults, fmt.Errorf("rolling: view of %d steps of %d buckets: the window has only %d buckets", steps, buckets, w.n))
	}
	if len(faults) > 0 {
		return View[T]{}, errors.Join(faults...)
	}
	return View[T]{w: w, steps: int64(steps), step: int64(buckets) * w.width}, nil
}

// Complete returns the view without its running step, so that all steps of the
// result are complete. It has one step less than v.
func (v View[T]) Complete() View[T] {
	v.complete = true
	return v
}

// Sum returns the sum of all values in the view.
func (v View[T]) Sum() T {
	if v.w == nil {
		return 0
	}
	return v.sum(v.w.now())
}

// Count returns the number of hits in the view.
func (v View[T]) Count() int64 {
	if v.w == nil {
		return 0
	}
	return v.count(v.w.now())
}

// Total returns the numbers of the whole view as one Bucket, all from the same
// read.
func (v View[T]) Total() Bucket[T] {
	if v.w == nil {
		return Bucket[T]{}
	}
	return v.total(v.w.now())
}

// Rate returns the sum of the view divided by its time in seconds. If all values
// are 1, that is the hits per second. The time starts with the view's first step,
// or at the creation of the window if that is later. It is at least one step, so
// that the first hit of a new window does not give a rate of millions.
func (v View[T]) Rate() float64 {
	if v.w == nil {
		return 0
	}
	return v.rate(v.w.now())
}

// Reduce calls f with every step of the view, oldest first, including steps without
// hits and steps before the creation of the window. It does not allocate if at most
// 64 buckets have hits.
func (v View[T]) Reduce(f func(Bucket[T])) {
	if v.w != nil {
		v.reduce(v.w.now(), f)
	}
}
