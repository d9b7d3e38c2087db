package measure

import (
	"math"
	"math/bits"
	"time"
)

// Histogram counts times with a precision of a 32nd. The zero value is empty. It
// is not safe for concurrent use.
type Histogram struct {
	counts [64 << steps]uint64
	total  uint64
	max    time.Duration
	slow   uint64
}

// steps is the number of bits below the highest one that are kept.
const steps = 5

// Slow is the time from which a call counts as slow.
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

// Merge adds the times in o.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.max = max(h.max, o.max)
	h.slow += o.slow
}

// At returns the time that the given share of all times does not exceed. It is
// at most a 32nd too long.
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

// Max returns the longest time.
func (h *Histogram) Max() time.Duration { return h.max }

// Slow returns the number of times longer than the constant Slow.
func (h *Histogram) Slow() uint64 { return h.slow }

// Len returns the number of times.
func (h *Histogram) Len() uint64 { return h.total }

// place returns the index for n: exact below 64, then 32 indexes per doubling.
func place(n uint64) int {
	shift := max(0, bits.Len64(n)-steps-1)
	return shift<<steps + int(n>>shift)
}

// end returns the largest number with the index i.
func end(i int) time.Duration {
	shift := max(0, i>>steps-1)
	return time.Duration((i-shift<<steps+1)<<shift - 1)
}
