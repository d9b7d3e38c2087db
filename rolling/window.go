package rolling

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Limits of the arguments of [New]. Within them, sums of times fit into an int64, and calls are fast
// enough.
const (
	maxBuckets = 1 << 20
	maxLength  = 10 * 365 * 24 * time.Hour
)

// A Window holds the statistics of the last n buckets, including the running one.
// [New] makes a Window; the zero Window is not usable. All methods are safe for
// concurrent use, take no lock, and read the clock once.
type Window[T Number] struct {
	born  time.Time
	n     int64
	width int64 // of a bucket, in nanoseconds

	// newest is the head of the list of cells. It is never nil: the first cell is
	// older than the window.
	newest atomic.Pointer[cell[T]]
}

// New returns a window of n buckets with the given total length. A bucket is
// length/n long, rounded up to whole nanoseconds. A window has 1 to 1048576
// buckets of at least a nanosecond each, and is at most ten years of 365 days long.
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

// MustNew is like [New], but panics if the arguments are out of range. Use it for
// constant arguments.
func MustNew[T Number](n int, length time.Duration) *Window[T] {
	w, err := New[T](n, length)
	if err != nil {
		panic(err)
	}
	return w
}

// now returns the age of the window in nanoseconds. It is monotonic. time.Since
// costs half as much as time.Now.
func (w *Window[T]) now() int64 { return int64(time.Since(w.born)) }

// Add counts one hit with the value v: a latency in a window of latencies, the
// bytes of an answer in a window of bytes, 1 in a window of requests. A NaN makes
// the sum of its bucket NaN. Min and Max ignore it.
func (w *Window[T]) Add(v T) {
	now, c := w.now(), w.newest.Load()
	switch {
	case now-c.start >= w.width:
		c = w.bucket(now, v)
	// Most hits are between the minimum and the maximum of the newest bucket. For integers this
	// is c.add inlined, because the call would take a tenth of Add.
	case !isFloat[T]() && v >= fromWord[T](c.least.Load()) && v <= fromWord[T](c.most.Load()):
		if isOne(v) {
			c.ones.Add(1)
			return
		}
		c.sum.Add(toWord(v))
		c.count.Add(1)
		return
	}
	if c != nil {
		c.add(v)
	}
}

// bucket returns the bucket to which v has to be added at now, or nil if it has put a
// new bucket with v in front. The bucket can be newer than now, if another writer read
// the clock later.
func (w *Window[T]) bucket(now int64, v T) *cell[T] {
	var opened *cell[T]
	for {
		c := w.newest.Load()
		if now-c.start < w.width {
			return c
		}
		if opened == nil {
			opened = newCell(now-now%w.width, v)
		}
		opened.older.Store(c)
		if w.newest.CompareAndSwap(c, opened) {
			w.trim(opened, c)
			return nil
		}
	}
}

// trim cuts off the cells that have left the window, so that they can be freed. It
// walks along the list once per window length. Each bucket then costs two steps of
// a walk, whatever the number of buckets, and the list has at most twice as many
// cells as the window has buckets.
//
// Readers and writers that still use a cell after the cut keep it alive. Hits that they add to it or
// read from it have left the window.
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

// Sum returns the sum of all values in the window.
func (w *Window[T]) Sum() T { return w.All().Sum() }

// Total returns the count, sum, minimum and maximum of the window, all from the
// same read.
func (w *Window[T]) Total() Bucket[T] { return w.All().Total() }

// Rate returns the sum per second; see [View.Rate].
func (w *Window[T]) Rate() float64 { return w.All().Rate() }

// Reduce calls f with every bucket, oldest first; see [View.Reduce].
// w.All().Complete().Reduce leaves out the running bucket.
func (w *Window[T]) Reduce(f func(Bucket[T])) { w.All().Reduce(f) }
