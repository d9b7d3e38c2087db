package window

import "fmt"

// A cells window is cut into n cells of ⌈length/n⌉ microseconds, aligned to
// the epoch, with one counter each. Its state does not grow with the traffic.
//
// A limit counts the whole oldest cell although only part of it is inside. It
// never admits more than the quota, and denies at most that cell's hits early.
// A counter weighs the oldest cell by its overlap, in 1/1024ths rounded down.
// The estimate is exact for hits that are spread evenly over the cell, and off
// by at most the hits of that cell.
//
// The layout is that of Sentinel's LeapArray. LeapArray leaves the oldest cell
// out, which admits up to twice the quota.
//
// State: cell width, index of the newest cell, sum of all cells, then the
// cells from the oldest that is not zero to the newest.
const cellsHeader = 3

type cells struct {
	quota  int64
	length int64 // µs
	width  int64 // µs
	n      int
}

func newCells(l *Limit) algorithm {
	w := &l.Window
	return &cells{quota: l.Quota, length: w.micros(), width: w.cellWidth(), n: w.cells()}
}

// cells returns the number of cells.
func (w *Window) cells() int {
	if w.N > 0 {
		return w.N
	}
	return defaultCells
}

// cellWidth returns the width of a cell in microseconds.
func (w *Window) cellWidth() int64 {
	n := int64(w.cells())
	return (w.micros() + n - 1) / n
}

// cellRow is the parts of a cells state.
type cellRow struct {
	width int64
	first int64 // index of cells[0]
	sum   int64
	cells []uint64
}

func readCells(s State) cellRow {
	if len(s) <= cellsHeader {
		return cellRow{width: 1}
	}
	cells := s[cellsHeader:]
	return cellRow{int64(s[0]), int64(s[1]) - int64(len(cells)) + 1, int64(s[2]), cells}
}

func (c *cellRow) newest() int64 { return c.first + int64(len(c.cells)) - 1 }

// expire drops the cells that lie outside a window of length w ending at now.
func (c *cellRow) expire(now Instant, w int64) {
	edge := floorDiv(int64(now)-w+1, c.width)
	for len(c.cells) > 0 && (c.first < edge || c.cells[0] == 0) {
		c.sum -= int64(c.cells[0])
		c.cells = c.cells[1:]
		c.first++
	}
}

// leaves returns the instant at which cell i has left a window of length w.
func (c *cellRow) leaves(i int, w int64) Instant {
	return Instant((c.first+int64(i)+1)*c.width + w - 1)
}

// estimate returns the hits in the d microseconds that end at now. The oldest
// cell is weighed by its overlap.
func (c *cellRow) estimate(now Instant, d int64) int64 {
	from := int64(now) - d + 1
	sum := c.sum
	for i, n := range c.cells {
		end := (c.first + int64(i) + 1) * c.width
		if end-c.width >= from {
			break
		}
		sum -= int64(n)
		if end > from {
			sum += weigh(int64(n), (end-from)*1024/c.width)
		}
	}
	return sum
}

// weigh returns n·share/1024, rounded down, with products that a Lua script can
// hold: above 2^40, n is cut to a multiple of 1024 first.
func weigh(n, share int64) int64 {
	if n < 1<<40 {
		return n * share / 1024
	}
	return n / 1024 * share
}

func (w *cells) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	n := h.N
	c := readCells(s)
	c.expire(now, w.length)
	if w.quota == Unlimited {
		return c.estimate(now, w.length), now
	}
	switch {
	case n == 0:
		return c.sum, now
	case n > w.quota:
		return c.sum, never
	}
	left, i := c.sum, -1
	for left > w.quota-n {
		i++
		left -= int64(c.cells[i])
	}
	if i < 0 {
		return c.sum, now
	}
	return c.sum, c.leaves(i, w.length)
}

func (w *cells) add(s State, now Instant, h Hits) State {
	width := w.width
	c := readCells(s)
	if len(c.cells) > 0 && c.width != width {
		s = c.recut(width, now)
		c = readCells(s)
	}
	c.width = width
	c.expire(now, w.length)
	index := floorDiv(int64(now), width)
	n := min(h.N, MaxHits-c.sum)
	kept, size := len(c.cells), cellsHeader+1
	if kept > 0 {
		index = max(index, c.newest()) // after a change of width the newest cell may end after now
		size = cellsHeader + int(index-c.first) + 1
	}
	out := s
	if size > cap(s) {
		out = make(State, size, max(size, 2*cap(s)))
	}
	out = out[:size]
	copy(out[cellsHeader:], c.cells)
	clear(out[cellsHeader+kept:])
	out[0], out[1], out[2] = uint64(width), uint64(index), uint64(c.sum+n)
	out[size-1] += uint64(n)
	return out
}

// sub gives back hits of the newest cells, or of the one that at is in.
func (w *cells) sub(s State, now, at Instant, h Hits) State {
	n := h.N
	c := readCells(s)
	c.expire(now, w.length)
	oldest, newest := 0, len(c.cells)-1
	if at != anytime {
		i := floorDiv(int64(at), c.width) - c.first
		if c.width != w.width || i < 0 || i > int64(newest) || c.cells[i] == 0 {
			return s
		}
		oldest, newest = int(i), int(i)
	}
	for i := newest; i >= oldest && n > 0; i-- {
		part := min(n, int64(c.cells[i]))
		c.cells[i] -= uint64(part)
		c.sum -= part
		n -= part
	}
	if c.sum == 0 {
		return s[:0]
	}
	out := s[:cellsHeader+len(c.cells)]
	copy(out[cellsHeader:], c.cells)
	out[2] = uint64(c.sum)
	return out
}

func (w *cells) expires(s State) Instant {
	c := readCells(s)
	for i := len(c.cells) - 1; i >= 0; i-- {
		if c.cells[i] > 0 {
			return c.leaves(i, w.length)
		}
	}
	return 0
}

// recut returns the state in cells of another width. The hits of a cell go to
// the cell that contains its end, so that no hit gets an earlier date, but not to one
// after now, because two limits that take turns would date the hits later and later.
func (c *cellRow) recut(width int64, now Instant) State {
	moved := func(index int64) int64 { return floorDiv(min((index+1)*c.width-1, int64(now)), width) }
	last := moved(c.newest())
	first := max(moved(c.first), last-MaxEntries)
	s := make(State, cellsHeader+int(last-first)+1)
	s[0], s[1] = uint64(width), uint64(last)
	for i, n := range c.cells {
		if to := moved(c.first + int64(i)); to >= first {
			s[cellsHeader+int(to-first)] += n
			s[2] += n
		}
	}
	return s
}

func (w *cells) wordsAfter(s State, _ Hits) int {
	if len(s) == 0 {
		return cellsHeader + 1
	}
	return w.maxWords()
}

func (w *cells) maxWords() int { return cellsHeader + w.n + 1 }

// seen returns the start of the newest cell.
func (w *cells) seen(s State) Instant { return Instant(s[0] * s[1]) }

// history returns all cells up to the one that now is in.
func (w *cells) history(s State, now Instant, _ int64) ([]Cell, bool) {
	c := readCells(s)
	c.expire(now, w.length)
	if len(c.cells) == 0 {
		return nil, true
	}
	// Of a key with holds, cells that a reload has cut anew can begin after now.
	current := max(floorDiv(int64(now), c.width), c.newest())
	all := make([]Cell, current-c.first+1)
	for i := range all {
		all[i].Start = Instant((c.first + int64(i)) * c.width)
		all[i].Length = Instant(c.width).length()
		if i < len(c.cells) {
			all[i].Hits = int64(c.cells[i])
		}
	}
	return all, true
}

func describeCells(name string, w *Window) string {
	return fmt.Sprintf("%s/%d", describeLength(name, w), w.cells())
}
