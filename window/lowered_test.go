package window_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/step"
	"github.com/weirhq/weir/window"
)

// A hold that is settled, or ends, under a lowered quota leaves what was counted under the larger one: a window that met both
// never admits more than the larger one.
func TestSettleUnderLoweredQuota(t *testing.T) {
	t.Parallel()
	for _, precision := range []int{0, 1000} {
		w := window.Sliding(time.Minute)
		w.Precision = precision
		large := window.MustCompile(window.Limit{Quota: 1000, Window: w, Hold: time.Second})
		small := window.MustCompile(window.Limit{Quota: 100, Window: w, Hold: time.Second})
		for _, settle := range []bool{true, false} {
			now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
			var r window.Result
			s := large.Do(step.Take, &r, nil, now, window.Hits{N: 50}, &window.Hold{ID: [12]byte{1}})
			for range 95 {
				now = now.Add(10 * time.Millisecond)
				s, _ = large.Take(s, now, window.Hits{N: 10})
			}
			if settle {
				s = small.Do(step.Settle, &r, s, now, window.Hits{N: 50}, &window.Hold{ID: [12]byte{1}})
			} else {
				now = now.Add(2 * time.Second)
				s, _ = small.Refund(s, now, window.Hits{N: 1})
				s, _ = large.Take(s, now, window.Hits{N: 1})
			}
			if got := large.Check(s, now, window.Hits{}); got.Used < 1000 {
				t.Errorf("precision %d, settle %t: got %d used, want 1000", precision, settle, got.Used)
			}
		}
	}
}
