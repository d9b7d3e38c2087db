package rolling

import (
	"math"
	"sync/atomic"
)

// A cell is a bucket in the list of a window. Hits are only ever added. A cell is
// never cleared, and has at least one hit when it becomes visible.
type cell[T Number] struct {
	start int64 // nanoseconds since the creation of the window
	older atomic.Pointer[cell[T]]
	count atomic.Int64
	sum   atomic.Uint64
	least atomic.Uint64
	most  atomic.Uint64
	_     [16]byte // makes 64 bytes, a cache line, so that cells share none
}

// newCell returns a cell with the hit v.
func newCell[T Number](start int64, v T) *cell[T] {
	c := &cell[T]{start: start}
	word := toWord(v)
	c.sum.Store(word)
	c.least.Store(word)
	c.most.Store(word)
	c.count.Store(1)
	return c
}

// add adds the hit v. It changes the count last, so that the other numbers include
// every hit that a reader finds counted.
func (c *cell[T]) add(v T) {
	if isFloat[T]() {
		addFloat(&c.sum, float64(v))
	} else {
		c.sum.Add(toWord(v))
	}
	if below(v, fromWord[T](c.least.Load())) || above(v, fromWord[T](c.most.Load())) {
		c.widen(v)
	}
	c.count.Add(1)
}

// widen makes v the minimum, the maximum or both where it is outside.
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
