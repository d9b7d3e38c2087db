package rolling

import (
	"math"
	"sync/atomic"
	"time"
)

// A cell is a bucket in the list of a window. Hits are only ever added. A cell is
// never cleared, and has at least one hit when it becomes visible.
type cell[T Number] struct {
	start int64 // nanoseconds since the creation of the window
	older atomic.Pointer[cell[T]]

	// ones counts the hits of the integer 1, which are most hits of a window that counts
	// requests. They take one atomic addition instead of two. count and sum are those of
	// all other hits.
	ones  atomic.Int64
	count atomic.Int64
	sum   atomic.Uint64

	least atomic.Uint64
	most  atomic.Uint64
	_     [8]byte // makes 64 bytes, a cache line, so that cells share none
}

// newCell returns a cell with the hit v.
func newCell[T Number](start int64, v T) *cell[T] {
	c := &cell[T]{start: start}
	word := toWord(v)
	c.least.Store(word)
	c.most.Store(word)
	if isOne(v) {
		c.ones.Store(1)
		return c
	}
	c.sum.Store(word)
	c.count.Store(1)
	return c
}

// hits returns the number of hits.
func (c *cell[T]) hits() int64 { return c.ones.Load() + c.count.Load() }

// total returns the sum of all hits.
func (c *cell[T]) total() T {
	sum := fromWord[T](c.sum.Load())
	if !isFloat[T]() {
		sum += T(c.ones.Load())
	}
	return sum
}

// add adds the hit v. It changes a count last, so that the other numbers include
// every hit that a reader finds counted.
func (c *cell[T]) add(v T) {
	switch {
	case isOne(v):
	case isFloat[T]():
		addFloat(&c.sum, float64(v))
	default:
		c.sum.Add(toWord(v))
	}
	if below(v, fromWord[T](c.least.Load())) || above(v, fromWord[T](c.most.Load())) {
		c.widen(v)
	}
	if isOne(v) {
		c.ones.Add(1)
		return
	}
	c.count.Add(1)
}

// widen makes v the minimum, the maximum or both if it is outside of them.
func (c *cell[T]) widen(v T) {
	for {
		was := c.least.Load()
		if !below(v, fromWord[T](was)) || c.least.CompareAndSwap(was, toWord(v)) {
			break
		}
	}
	for {
		was := c.most.Load()
		if !above(v, fromWord[T](was)) || c.most.CompareAndSwap(was, toWord(v)) {
			break
		}
	}
}

func addFloat(sum *atomic.Uint64, v float64) {
	for {
		was := sum.Load()
		if sum.CompareAndSwap(was, math.Float64bits(math.Float64frombits(was)+v)) {
			return
		}
	}
}

// A Bucket holds the numbers of one step of a [View]. Without hits, Count, Sum, Min
// and Max are zero.
type Bucket[T Number] struct {
	Start time.Time // start of the step: the wall clock at the creation of the window, plus the time since
	Count int64
	Sum   T
	Min   T
	Max   T
}

// take adds a cell's hits to b.
func (b *Bucket[T]) take(c *cell[T]) {
	count := c.hits() // first; see cell.add
	least, most := fromWord[T](c.least.Load()), fromWord[T](c.most.Load())
	if b.Count == 0 || below(least, b.Min) {
		b.Min = least
	}
	if b.Count == 0 || above(most, b.Max) {
		b.Max = most
	}
	b.Count += count
	b.Sum += c.total()
}
