package rolling

import (
	"math"
	"sync/atomic"
)

// A cell is one bucket as it is kept. It only takes hits in, is never emptied,
// and has at least one hit from the moment that others can see it.
type cell[T Number] struct {
	start int64 // nanoseconds since the window was made
	older atomic.Pointer[cell[T]]
	count atomic.Int64
	sum   atomic.Uint64
	least atomic.Uint64
	most  atomic.Uint64
	_     [16]byte // 64 bytes, a cache line: the one before was written by others
}

// newCell makes a cell that has v in it.
func newCell[T Number](start int64, v T) *cell[T] {
	c := &cell[T]{start: start}
	word := toWord(v)
	c.sum.Store(word)
	c.least.Store(word)
	c.most.Store(word)
	c.count.Store(1)
	return c
}

// add counts v last: what readers find counted is in the other numbers too.
func (c *cell[T]) add(v T) {
	if isFloat[T]() {
		addFloat(&c.sum, float64(v))
	} else {
		c.sum.Add(toWord(v))
	}
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
	c.count.Add(1)
}

func addFloat(sum *atomic.Uint64, v float64) {
	for {
		was := sum.Load()
		if sum.CompareAndSwap(was, math.Float64bits(math.Float64frombits(was)+v)) {
			return
		}
	}
}
