package rolling_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/rolling"
)

// TestLateWriter wakes a writer at every moment after it found its bucket. The hit
// is in that bucket while the window has the bucket, and afterwards in none.
func TestLateWriter(t *testing.T) {
	t.Parallel()
	const n = 3
	for late := range 3 * n {
		w := rolling.MustNew[int](n, n*time.Second)
		w.AddAt(0, 1)
		write := w.Writer()
		for second := 1; second <= late; second++ {
			w.AddAt(time.Duration(second)*time.Second, 10)
		}
		write(100)

		now := time.Duration(late) * time.Second
		want := 10 * min(late, n)
		if late < n {
			want = 101 + 10*late
		}
		if got := w.All().SumAt(now); got != want {
			t.Errorf("%ds late: got %d, want %d", late, got, want)
		}
		w.All().ReduceAt(now, func(b rolling.Bucket[int]) {
			if b.Count == 2 && b.Max != 100 || b.Count == 1 && b.Sum != 10 || b.Count > 2 {
				t.Errorf("%ds late: got %+v, want one hit of 10, or those of 1 and 100", late, b)
			}
		})
	}
}

// TestOldBucketsAreFreed runs a window for long: the list never has more buckets than
// two window lengths.
func TestOldBucketsAreFreed(t *testing.T) {
	t.Parallel()
	const n = 10
	w := rolling.MustNew[int](n, n*time.Second)
	for second := range 1000 {
		w.AddAt(time.Duration(second)*time.Second, 1)
		if got := w.Kept(); got > 2*n {
			t.Fatalf("second %d: got %d cells, want at most %d", second, got, 2*n)
		}
	}
}
