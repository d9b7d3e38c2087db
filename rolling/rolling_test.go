package rolling_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rolling"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n      int
		length time.Duration
		want   []string // a word from each fault
	}{
		{0, time.Second, []string{"0 buckets"}},
		{1<<20 + 1, time.Hour, []string{"1048577 buckets"}},
		{-1, -time.Second, []string{"-1 buckets", "length -1s"}},
		{10, 9, []string{"10 buckets over 9ns"}},
		{1, math.MaxInt64, []string{"length"}},
	} {
		w, err := rolling.New[int](c.n, c.length)
		if w != nil || err == nil {
			t.Errorf("%d over %v: got no error", c.n, c.length)
			continue
		}
		faults := strings.Split(err.Error(), "\n")
		if len(faults) != len(c.want) {
			t.Errorf("%d over %v: got %q, want %d faults", c.n, c.length, faults, len(c.want))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(faults[i], want) {
				t.Errorf("%d over %v: got %q, want it to name %q", c.n, c.length, faults[i], want)
			}
		}
	}
}

func TestMustNewPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("got a window of no buckets, want a panic")
		}
	}()
	rolling.MustNew[int](0, time.Second)
}

func TestViewRefuses(t *testing.T) {
	t.Parallel()
	w := rolling.MustNew[int](10, time.Second)
	for _, c := range []struct {
		steps, buckets int
		want           string
	}{
		{0, 0, "view of 0 steps: take 1 or more\nrolling: view in steps of 0 buckets"},
		{11, 1, "the window has only 10 buckets"},
		{4, 3, "the window has only 10 buckets"},
		{math.MaxInt, math.MaxInt, "the window has only 10 buckets"},
	} {
		if _, err := w.View(c.steps, c.buckets); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d steps of %d: got %v, want %q", c.steps, c.buckets, err, c.want)
		}
	}
	for _, shape := range [][2]int{{1, 1}, {10, 1}, {1, 10}, {3, 3}} {
		if _, err := w.View(shape[0], shape[1]); err != nil {
			t.Errorf("%v: got %v, want no error", shape, err)
		}
	}
}

func TestExtremeBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n      int
		length time.Duration
	}{
		{1, 1}, {10, 10}, {1, 10 * 365 * 24 * time.Hour}, {1 << 20, 1 << 20}, {3, time.Second},
	} {
		w, err := rolling.New[int](c.n, c.length)
		if err != nil {
			t.Errorf("%d over %v: got %v, want no error", c.n, c.length, err)
			continue
		}
		w.AddAt(0, 7)
		if got := w.All().SumAt(0); got != 7 {
			t.Errorf("%d over %v: got %d, want 7", c.n, c.length, got)
		}
		if got := w.All().SumAt(c.length + time.Duration(c.n)); got != 0 {
			t.Errorf("%d over %v: got %d after it, want 0", c.n, c.length, got)
		}
		const late = 2 * 100 * 365 * 24 * time.Hour
		w.AddAt(late, 8)
		if got := w.All().SumAt(late); got != 8 {
			t.Errorf("%d over %v: got %d after two centuries, want 8", c.n, c.length, got)
		}
	}
}

func TestZeroView(t *testing.T) {
	t.Parallel()
	var v rolling.View[int]
	v.Complete().Reduce(func(b rolling.Bucket[int]) { t.Errorf("got %v, want no step", b) })
	if v.Sum() != 0 || v.Count() != 0 || v.Rate() != 0 || v.Total() != (rolling.Bucket[int]{}) {
		t.Errorf("got %v, want nothing", v.Total())
	}
}

// TestNotANumber adds NaN, which must affect only the sums that include it.
func TestNotANumber(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	w := rolling.MustNew[float64](2, 2*time.Second)
	for _, v := range []float64{nan, 3, nan, 1, math.Inf(1), nan} {
		w.AddAt(0, v)
	}
	b := w.All().TotalAt(0)
	if b.Count != 6 || !math.IsNaN(b.Sum) || b.Min != 1 || !math.IsInf(b.Max, 1) {
		t.Errorf("got %+v, want 6 hits from 1 to +Inf with a sum of NaN", b)
	}
	w.AddAt(time.Second, nan)
	w.AddAt(2*time.Second, 5)
	if b := w.All().TotalAt(2 * time.Second); b.Min != 5 || b.Max != 5 || b.Count != 2 {
		t.Errorf("got %+v, want 2 hits from 5 to 5", b)
	}
	w.AddAt(3*time.Second, 6)
	if got := w.All().SumAt(3 * time.Second); got != 11 {
		t.Errorf("got %v, want 11", got)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	w := rolling.MustNew[int](10, 10*time.Second)
	full := w.All().Complete()
	for _, c := range []struct {
		at             time.Duration
		add            int
		rate, complete float64
	}{
		{0, 6, 6, 0},                                             // over a second at least
		{1500 * time.Millisecond, 0, 4, 6},                       // 6 in 1.5s; 6 in the first second
		{3 * time.Second, 6, 4, 2},                               // 12 in 3s; 6 in 3s
		{8 * time.Second, 0, 1.5, 1.5},                           // 12 in 8s
		{9*time.Second + 600*time.Millisecond, 0, 1.25, 12. / 9}, // 12 in 9.6s; 12 in 9s
		{10 * time.Second, 3, 1, 6. / 9},                         // 9 in (1s, 10s]; 6 in nine complete ones
		{12*time.Second + 500*time.Millisecond, 0, 9 / 9.5, 1},   // since 3s
		{40 * time.Second, 0, 0, 0},
	} {
		if c.add > 0 {
			w.AddAt(c.at, c.add)
		}
		if got := w.All().RateAt(c.at); math.Abs(got-c.rate) > 1e-9 {
			t.Errorf("at %v: got %v a second, want %v", c.at, got, c.rate)
		}
		if got := full.RateAt(c.at); math.Abs(got-c.complete) > 1e-9 {
			t.Errorf("at %v: got %v a second in complete buckets, want %v", c.at, got, c.complete)
		}
	}
}
