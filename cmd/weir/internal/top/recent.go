package top

import (
	"cmp"
	"math"
	"slices"
)

// recent counts the keys of two periods: the current one and the one before.
// The zero value has counted nothing.
type recent struct {
	now, before generation
}

// generation is what was counted in one period.
type generation struct {
	sketch *Sketch // nil: nothing was counted
	sample int64   // the largest number of decisions that one was counted as
}

// List holds the most frequent keys of two periods.
type List struct {
	// Total is the sum of the counts of all keys. For an exact count, Sample is
	// 1. Otherwise at least one decision in Sample was counted.
	Total, Sample int64

	// Error is the maximum count of a key that is not in Entries, unless the list was cut
	// to fewer keys than there are.
	Error int64

	// Entries holds the keys, the most frequent one first.
	Entries []Entry
}

// add counts n of key, as one decision in sample, which was by an override or not. The sketch has a capacity of k keys.
func (r *recent) add(key []byte, n, sample int64, k int, override bool) {
	if r.now.sketch == nil {
		r.now.sketch = NewSketch(k)
	}
	r.now.sample = max(r.now.sample, sample)
	r.now.sketch.Mark(r.now.sketch.Add(key, times(n, sample)), override)
}

// rotate ends the current period. The next one has a capacity of k keys.
func (r *recent) rotate(k int) {
	r.now, r.before = r.before, r.now
	if r.now.sketch != nil {
		r.now.sketch.Reset(k)
	}
	r.now.sample = 0
}

// list returns the n most frequent keys. If one of the periods does not have a key, its
// highest possible count there is added to the count and to the error.
func (r *recent) list(n int) List {
	l := List{Sample: max(r.now.sample, r.before.sample, 1)}
	for _, g := range []generation{r.now, r.before} {
		if g.sketch == nil {
			continue
		}
		l.Total, l.Error = plus(l.Total, g.sketch.Total()), plus(l.Error, g.sketch.Min())
		for i := range g.sketch.slots {
			e := g.sketch.slots[i].Entry
			other := r.before.sketch
			if other == g.sketch {
				if _, both := r.now.index()[e.Key]; both {
					continue
				}
				other = r.now.sketch
			}
			if other != nil {
				more := other.Of(e.Key)
				e.Count, e.Error = plus(e.Count, more.Count), plus(e.Error, more.Error)
			}
			l.Entries = append(l.Entries, e)
		}
	}
	slices.SortFunc(l.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error), cmp.Compare(a.Key, b.Key))
	})
	l.Entries = slices.Clip(l.Entries[:min(max(n, 0), len(l.Entries))])
	return l
}

// index returns the keys of g.
func (g generation) index() map[string]int32 {
	if g.sketch == nil {
		return nil
	}
	return g.sketch.index
}

// times returns a · b, neither of which is negative, or math.MaxInt64.
func times(a, b int64) int64 {
	if b > 1 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
