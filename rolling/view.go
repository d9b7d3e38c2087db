package rolling

import (
	"errors"
	"fmt"
)

// A View reads a window: all of it, its last buckets, several buckets as one
// step, or only what is complete. It is a small value, holds nothing of its own
// and may be copied and kept. The zero View is empty. All methods are safe for
// concurrent use, take no lock, and read the clock once.
type View[T Number] struct {
	w        *Window[T]
	steps    int64
	step     int64 // nanoseconds
	complete bool  // without the running step
}

// All is the view of the whole window, a step a bucket.
func (w *Window[T]) All() View[T] { return View[T]{w: w, steps: w.n, step: w.width} }

// View is a coarser view of the same hits: the running step and those before
// it, each as long as so many buckets. Steps are lined up with the window's
// making. Together they have at most the window's buckets.
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

// Complete is the view without its running step: one step shorter, and no
// number in it is of half a step only.
func (v View[T]) Complete() View[T] {
	v.complete = true
	return v
}

// Sum is the sum of all values in the view.
func (v View[T]) Sum() T {
	if v.w == nil {
		return 0
	}
	return v.sum(v.w.now())
}

// Count is how many hits are in the view.
func (v View[T]) Count() int64 {
	if v.w == nil {
		return 0
	}
	return v.count(v.w.now())
}

// Min is the least value in the view, and false when there is none.
func (v View[T]) Min() (T, bool) {
	t := v.Total()
	return t.Min, t.Count > 0
}

// Max is the greatest value in the view, and false when there is none.
func (v View[T]) Max() (T, bool) {
	t := v.Total()
	return t.Max, t.Count > 0
}

// Total has all numbers of the view, from one reading, as if it were one
// bucket.
func (v View[T]) Total() Bucket[T] {
	if v.w == nil {
		return Bucket[T]{}
	}
	return v.total(v.w.now())
}

// Rate is the sum a second, over the time that the view's steps have lasted by
// now, or since the window was made if that is later: with Add(1) the hits a
// second. It is never taken over less than one step, so that the first hit of a
// new window is not a rate of millions.
func (v View[T]) Rate() float64 {
	if v.w == nil {
		return 0
	}
	return v.rate(v.w.now())
}

// Reduce calls f with every step of the view, oldest first, also with those in
// which nothing happened and those before the window was made. It allocates
// nothing while at most 64 buckets have hits.
func (v View[T]) Reduce(f func(Bucket[T])) {
	if v.w != nil {
		v.reduce(v.w.now(), f)
	}
}
