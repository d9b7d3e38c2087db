package rolling_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/rolling"
)

// TestAllocations is not parallel, because AllocsPerRun counts the allocations of
// all goroutines.
func TestAllocations(t *testing.T) {
	w := rolling.MustNew[float64](10, 10*time.Hour)
	var now time.Duration
	for range 10 {
		w.AddAt(now, 1)
		now += time.Hour
	}
	last := now - time.Hour
	view := w.All().Complete()
	var sum float64
	for _, c := range []struct {
		name string
		f    func()
		want float64
	}{
		{"an Add", func() { w.AddAt(last, 3) }, 0},
		{"an Add by the clock", func() { w.Add(3) }, 0},
		{"Sum", func() { sum += w.Sum() }, 0},
		{"Count", func() { sum += float64(w.All().Count()) }, 0},
		{"Total", func() { sum += w.Total().Max }, 0},
		{"Rate", func() { sum += w.Rate() }, 0},
		{"Reduce", func() { w.Reduce(func(b rolling.Bucket[float64]) { sum += b.Sum }) }, 0},
		{"a view", func() { sum += view.Sum() }, 0},
		{"an Add that opens a bucket", func() { now += time.Hour; w.AddAt(now, 1) }, 1},
	} {
		if got := testing.AllocsPerRun(100, c.f); got != c.want {
			t.Errorf("%s: got %v allocations, want %v", c.name, got, c.want)
		}
	}
}
