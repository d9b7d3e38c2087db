package rolling

import "time"

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
