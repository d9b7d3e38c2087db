package rolling

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Bounds of what [New] takes. They keep every sum of times within an int64, and
// the walk over the buckets within what a call may cost.
const (
	maxBuckets = 1 << 20
	maxLength  = 10 * 365 * 24 * time.Hour
)

// A Window has the statistics of the last n buckets, the running one included.
// [New] makes one; the zero Window is not usable. All methods are safe for
// concurrent use, take no lock, and read the clock once.
type Window[T Number] struct {
	born  time.Time
	n     int64
	width int64 // of a bucket, in nanoseconds

	// newest is the head of the list of cells. There is always one: the first
	// is so old that it never was inside.
	newest atomic.Pointer[cell[T]]
}

// New makes a window of n buckets over a length. A bucket is length/n long,
// rounded up to whole nanoseconds. There are 1 to 1048576 buckets, of at least
// a nanosecond each, over at most ten years of 365 days.
func New[T Number](n int, length time.Duration) (*Window[T], error) {
	var faults []error
	if n < 1 || n > maxBuckets {
		faults = append(faults, fmt.Errorf("rolling: %d buckets: take 1 to %d", n, maxBuckets))
	}
	switch {
	case length < 1 || length > maxLength:
		faults = append(faults, fmt.Errorf("rolling: length %v: take 1ns to %v", length, maxLength))
	case int64(n) > int64(length):
		faults = append(faults, fmt.Errorf("rolling: %d buckets over %v: take a bucket of 1ns or more", n, length))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	w := &Window[T]{born: time.Now(), n: int64(n)}
	w.width = (int64(length) + w.n - 1) / w.n
	w.newest.Store(&cell[T]{start: -w.n * w.width})
	return w, nil
}

// MustNew is [New] for numbers that are written in the program; it panics when
// they are out of bounds.
func MustNew[T Number](n int, length time.Duration) *Window[T] {
	w, err := New[T](n, length)
	if err != nil {
		panic(err)
	}
	return w
}

// now is the age of the window in nanoseconds. It is monotonic, and
// time.Since of an instant costs half of what time.Now does.
func (w *Window[T]) now() int64 { return int64(time.Since(w.born)) }

// Add counts one hit with the value v: in a window of latencies one latency, in
// one of bytes the bytes of one answer, in one of requests 1. What is not a
// number (NaN) makes the sum of its bucket NaN; Min and Max pass it over.
func (w *Window[T]) Add(v T) { w.add(w.now(), v) }

func (w *Window[T]) add(now int64, v T) {
	c := w.newest.Load()
	if now-c.start >= w.width {
		w.open(now, v)
		return
	}
	// Also when another writer's clock was read later and c is newer than now.
	c.add(v)
}

// open counts v in the bucket of now, which it puts in front unless somebody
// else does so first.
func (w *Window[T]) open(now int64, v T) {
	opened := newCell(now-now%w.width, v)
	for {
		c := w.newest.Load()
		if now-c.start < w.width {
			c.add(v)
			return
		}
		opened.older.Store(c)
		if w.newest.CompareAndSwap(c, opened) {
			w.trim(opened, c)
			return
		}
	}
}

// trim cuts off the cells that have left the window, so that they can be freed.
// It does so once in a window's length: a bucket then costs two steps of the
// walk however many there are, and at most twice as many are kept as count.
//
// Readers and writers that are still at a cell behind the cut keep it alive;
// what they add to it or read from it has left the window.
func (w *Window[T]) trim(newest, before *cell[T]) {
	length := w.n * w.width
	if newest.start/length == before.start/length {
		return
	}
	last := newest
	for c := last.older.Load(); c != nil && c.start > newest.start-length; c = c.older.Load() {
		last = c
	}
	last.older.Store(nil)
}

// Sum is the sum of all values inside.
func (w *Window[T]) Sum() T { return w.All().Sum() }

// Count is how many hits are inside.
func (w *Window[T]) Count() int64 { return w.All().Count() }

// Min is the least value inside, and false when there is none.
func (w *Window[T]) Min() (T, bool) { return w.All().Min() }

// Max is the greatest value inside, and false when there is none.
func (w *Window[T]) Max() (T, bool) { return w.All().Max() }

// Total has all these numbers from one reading.
func (w *Window[T]) Total() Bucket[T] { return w.All().Total() }

// Rate is the sum a second; see [View.Rate].
func (w *Window[T]) Rate() float64 { return w.All().Rate() }

// Reduce calls f with every bucket, oldest first; see [View.Reduce].
// w.All().Complete().Reduce leaves the running one out.
func (w *Window[T]) Reduce(f func(Bucket[T])) { w.All().Reduce(f) }
