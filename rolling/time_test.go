package rolling_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/rolling"
)

func TestHitsLeaveWithTheirBucket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := rolling.MustNew[int](3, 3*time.Second)
		for _, step := range []struct {
			add  int
			wait time.Duration
			want int
		}{
			{1, 999 * time.Millisecond, 1},
			{2, time.Millisecond, 3},  // the end of the first bucket
			{4, 2*time.Second - 1, 7}, // the last nanosecond of the third
			{8, 1, 12},                // the first has left, with 1 and 2
			{16, 3 * time.Second, 0},
			{32, 0, 32},
			{64, 1000 * time.Hour, 0},
		} {
			w.Add(step.add)
			time.Sleep(step.wait)
			if got := w.Sum(); got != step.want {
				t.Errorf("%v after adding %d: got %d, want %d", step.wait, step.add, got, step.want)
			}
		}
	})
}

// TestCriticalHit counts points until there are 1000 within three seconds.
func TestCriticalHit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		points := rolling.MustNew[int](30, 3*time.Second)
		var critical []time.Duration
		start := time.Now()
		for _, blow := range []struct {
			wait time.Duration
			n    int
		}{{0, 400}, {time.Second, 500}, {2 * time.Second, 450}, {500 * time.Millisecond, 60}, {10 * time.Second, 999}} {
			time.Sleep(blow.wait)
			points.Add(blow.n)
			if points.Sum() >= 1000 {
				critical = append(critical, time.Since(start))
			}
		}
		// At 3s the 400 have left; at 3.5s the 500 are still inside.
		if want := []time.Duration{3500 * time.Millisecond}; !slices.Equal(critical, want) {
			t.Errorf("got critical hits at %v, want %v", critical, want)
		}
	})
}

// TestRequestsPerSecond reads a minute of requests in seconds and, through a coarser
// view of the same hits, in steps of ten seconds.
func TestRequestsPerSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		minute := rolling.MustNew[int](60, time.Minute)
		for second := range 60 {
			for range second {
				minute.Add(1)
			}
			if got := lastStep(minute.All()); got != second {
				t.Errorf("second %d: got %d requests, want %d", second, got, second)
			}
			time.Sleep(time.Second)
		}
		tens, err := minute.View(6, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		tens.Complete().Reduce(func(b rolling.Bucket[int]) { got = append(got, b.Sum) })
		// The minute is over: a seventh step is running, and the first has left.
		if want := []int{145, 245, 345, 445, 545}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func lastStep(v rolling.View[int]) (sum int) {
	v.Reduce(func(b rolling.Bucket[int]) { sum = b.Sum })
	return sum
}

// TestStarts checks the dates of buckets: the wall clock at the creation of the
// window, plus the monotonic time since.
func TestStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		born := time.Now()
		w := rolling.MustNew[int](2, time.Minute)
		time.Sleep(100 * time.Second)
		w.Add(5)
		var got []time.Duration
		w.Reduce(func(b rolling.Bucket[int]) { got = append(got, b.Start.Sub(born)) })
		if want := []time.Duration{time.Minute, 90 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("got buckets from %v, want %v", got, want)
		}
		if total := w.Total(); total.Min != 5 || total.Max != 5 || total.Start.Sub(born) != time.Minute || w.Rate() != 5./40 {
			t.Errorf("got %+v at a rate of %v, want one hit of 5 at %v", total, w.Rate(), 5./40)
		}
	})
}
