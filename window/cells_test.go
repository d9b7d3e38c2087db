package window_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// slots is the model of a cells window: every hit with the cell it fell in.
type slots struct {
	length, width int64
	head          int64
	hits          []slotted // in the order of cells
}

type slotted struct{ cell, n int64 }

func newSlots(length time.Duration, n int64) *slots {
	w := length.Microseconds()
	return &slots{length: w, width: (w + n - 1) / n}
}

func (c *slots) instant(now window.Instant) window.Instant {
	if len(c.hits) > 0 {
		return max(now, window.Instant(c.head*c.width))
	}
	return now
}

// overlaps reports whether the cell's last microsecond is inside (now-W, now].
func (c *slots) overlaps(cell int64, now window.Instant) bool {
	return (cell+1)*c.width-1 > int64(now)-c.length
}

func (c *slots) used(now window.Instant) (used int64) {
	for _, h := range c.hits {
		if c.overlaps(h.cell, now) {
			used += h.n
		}
	}
	return used
}

func (c *slots) changes(now window.Instant) (at []window.Instant) {
	for _, h := range c.hits {
		if c.overlaps(h.cell, now) {
			at = append(at, window.Instant((h.cell+1)*c.width-1+c.length))
		}
	}
	return at
}

func (c *slots) forget(now window.Instant) {
	c.hits = slices.DeleteFunc(c.hits, func(h slotted) bool { return !c.overlaps(h.cell, now) })
}

func (c *slots) add(now window.Instant, n int64) {
	c.forget(now)
	c.head = int64(now) / c.width
	c.hits = append(c.hits, slotted{c.head, n})
}

func (c *slots) refund(now window.Instant, n int64) {
	if n > 0 {
		c.forget(now)
	}
	for n > 0 && len(c.hits) > 0 {
		newest := &c.hits[len(c.hits)-1]
		back := min(n, newest.n)
		n -= back
		if newest.n -= back; newest.n == 0 {
			c.hits = c.hits[:len(c.hits)-1]
		}
	}
}

// A limit over cells agrees exactly with the definition.
func TestCellsLimit(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1, 2, 7, 60} {
		for _, quota := range []int64{0, 1, 10, 1000} {
			for _, shape := range shapes {
				t.Run(fmt.Sprintf("n=%d/quota=%d/%s", n, quota, shape), func(t *testing.T) {
					t.Parallel()
					rnd := rand.New(rand.NewPCG(uint64(n), uint64(quota)))
					for _, length := range []time.Duration{61 * time.Microsecond, time.Second, time.Hour} {
						l := window.MustCompile(window.Limit{Quota: quota, Window: window.Cells(length, int(n))})
						tr := traffic{shape: shape, verbs: anyVerb, length: length, most: quota + 1, back: true}
						agree(t, l, newSlots(length, n), tr.calls(rnd, 1000))
					}
				})
			}
		}
	}
}

// Compared with the exact log, cells count every hit that is inside, and none
// that left more than a cell ago. So they never admit more than the quota.
func TestCellsBound(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1, 2, 7, 60} {
		for _, shape := range shapes {
			rnd := rand.New(rand.NewPCG(uint64(n), 9))
			length := time.Minute
			l := window.MustCompile(window.Limit{Quota: 50, Window: window.Cells(length, int(n))})
			width := time.Duration((length.Microseconds()+n-1)/n) * time.Microsecond
			inside, spare := &log{length: length}, &log{length: length + width}
			var list admitted
			var s window.State
			tr := traffic{shape: shape, verbs: []verb{take}, length: length, most: 20}
			for i, c := range tr.calls(rnd, 3000) {
				var r window.Result
				s, r = c.do(l, s)
				if least, most := inside.used(c.now), spare.used(c.now); r.Before < least || r.Before > most {
					t.Fatalf("%d cells, call %d: got %d used before, want %d to %d", n, i, r.Before, least, most)
				}
				if r.Allowed {
					inside.add(c.now, c.hits.N)
					spare.add(c.now, c.hits.N)
					list = append(list, logged{c.now, c.hits.N})
				}
			}
			if got := list.most(length); got > l.Quota {
				t.Errorf("%d cells: got %d hits admitted in a window, want at most %d", n, got, l.Quota)
			}
		}
	}
}

// A counter weighs the oldest cell by its overlap, exact to a 1024th of the cell
// and one hit. Count does the same for less than the window.
func TestCellsEstimate(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1, 7, 60} {
		for _, shape := range shapes {
			rnd := rand.New(rand.NewPCG(uint64(n), 10))
			length := time.Minute
			l := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Cells(length, int(n))})
			model := newSlots(length, n)
			var s window.State
			tr := traffic{shape: shape, verbs: []verb{take, record}, length: length, most: 5000}
			for i, c := range tr.calls(rnd, 2000) {
				var r window.Result
				s, r = c.do(l, s)
				model.add(c.now, c.hits.N)
				if want, spare := model.weighed(c.now, length); r.Used > want || r.Used < want-spare {
					t.Fatalf("%d cells, call %d: got %d used, want %d to %d", n, i, r.Used, want-spare, want)
				}
				if !r.Allowed || r.Remaining != window.Unlimited || r.RetryAfter != 0 {
					t.Fatalf("%d cells, call %d: got %+v, want unlimited", n, i, r)
				}
				within := time.Duration(1+rnd.Int64N(length.Microseconds())) * time.Microsecond
				reading := l.Read(s, c.now)
				got := reading.Count(within)
				if want, spare := model.weighed(c.now, within); got > want || got < want-spare {
					t.Fatalf("%d cells, call %d: got %d in the last %v, want %d to %d", n, i, got, within, want-spare, want)
				}
			}
		}
	}
}

// weighed returns the estimate over the last d, rounded down once, and by how
// much coarser weights may lower it.
func (c *slots) weighed(now window.Instant, d time.Duration) (want, spare int64) {
	from := int64(now) - d.Microseconds() + 1
	oldest := int64(0)
	for _, h := range c.hits {
		start, end := h.cell*c.width, (h.cell+1)*c.width
		switch {
		case start >= from:
			want += h.n
		case end > from:
			oldest += h.n
		}
	}
	end := (from/c.width + 1) * c.width
	return want + oldest*(end-from)/c.width, 1 + oldest/1024
}

// History has the cells, oldest first, with the hits that were counted in each.
func TestCellsHistory(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(11, 0))
	l := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Cells(time.Minute, 6)})
	model := newSlots(time.Minute, 6)
	var s window.State
	tr := traffic{shape: "bursts", verbs: []verb{record}, length: time.Minute, most: 100}
	for i, c := range tr.calls(rnd, 500) {
		s, _ = c.do(l, s)
		model.add(c.now, c.hits.N)
		sum, before := int64(0), window.Instant(0)
		for _, cell := range l.Read(s, c.now).History {
			if cell.Start <= before && before != 0 {
				t.Fatalf("call %d: got a cell at %d after one at %d, want oldest first", i, cell.Start, before)
			}
			if cell.Length != 10*time.Second {
				t.Fatalf("call %d: got a cell of %v, want 10s", i, cell.Length)
			}
			var want int64
			for _, h := range model.hits {
				if window.Instant(h.cell*model.width) == cell.Start {
					want += h.n
				}
			}
			if cell.Hits != want {
				t.Fatalf("call %d: got %d hits in the cell at %d, want %d", i, cell.Hits, cell.Start, want)
			}
			sum += cell.Hits
			before = cell.Start
		}
		if want := model.used(c.now); sum != want {
			t.Fatalf("call %d: got %d hits in all cells, want %d", i, sum, want)
		}
	}
}
