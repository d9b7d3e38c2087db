package measure

import (
	"math"
	"math/bits"
	"time"
)

// Histogram counts times in steps of a 32nd of their size. Its zero value is
// empty. It is not safe for concurrent use.
type Histogram struct {
	counts [64 << steps]uint64
	total  uint64
	max    time.Duration
	slow   uint64
}

// steps is how many bits below the highest one tell two times apart.
const steps = 5

// Slow is from where on a call counts as slow.
const Slow = time.Millisecond

// Add counts one time.
func (h *Histogram) Add(d time.Duration) {
	h.counts[place(uint64(max(0, d)))]++
	h.total++
	h.max = max(h.max, d)
	if d > Slow {
		h.slow++
	}
}

// Merge counts all that o counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.max = max(h.max, o.max)
	h.slow += o.slow
}

// At is the time that a share of all stay within, at most a 32nd too long.
func (h *Histogram) At(share float64) time.Duration {
	rest := uint64(math.Ceil(share * float64(h.total)))
	for i, n := range h.counts {
		if n >= rest {
			return min(h.max, end(i))
		}
		rest -= n
	}
	return h.max
}

// Max is the longest time.
func (h *Histogram) Max() time.Duration { return h.max }

// Slow is how many times are longer than the constant of this name.
func (h *Histogram) Slow() uint64 { return h.slow }

// Len is how many times were counted.
func (h *Histogram) Len() uint64 { return h.total }

// place is where n is counted: exactly below 64, then 32 places a doubling.
func place(n uint64) int {
	shift := max(0, bits.Len64(n)-steps-1)
	return shift<<steps + int(n>>shift)
}

// end is the largest number that is counted at i.
func end(i int) time.Duration {
	shift := max(0, i>>steps-1)
	return time.Duration((i-shift<<steps+1)<<shift - 1)
}
