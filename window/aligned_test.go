package window_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// aligned is the model of an aligned window: it counts lengths from the epoch.
func aligned(length time.Duration) *span {
	return &span{period: func(now window.Instant) (from, to window.Instant) {
		whole := now.Time().Sub(time.Unix(0, 0)) / length
		if now < 0 {
			whole--
		}
		return window.At(time.Unix(0, 0).Add(whole * length)), window.At(time.Unix(0, 0).Add((whole + 1) * length))
	}}
}

func TestAlignedIsExact(t *testing.T) {
	t.Parallel()
	for _, quota := range []int64{0, 1, 2, 10, 1000, window.Unlimited} {
		for _, shape := range shapes {
			t.Run(fmt.Sprintf("quota=%d/%s", quota, shape), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(1, uint64(quota)))
				for _, length := range []time.Duration{time.Second, time.Hour, 30 * 24 * time.Hour} {
					l := window.MustCompile(window.Limit{Quota: quota, Window: window.Aligned(length)})
					tr := traffic{shape: shape, verbs: anyVerb, length: length, most: max(1, quota+1)}
					agree(t, l, aligned(length), tr.calls(rnd, 1500))
				}
			})
		}
	}
}

// The windows of a week begin on Thursdays, because 1 January 1970 was one.
func TestAlignedPeriods(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := window.At(time.Date(2026, 11, 20, 10, 43, 32, 0, time.UTC))
	for length, want := range map[time.Duration][2]string{
		time.Second: {"2026-11-20T10:43:32Z", "2026-11-20T10:43:33Z"},
		time.Hour:   {"2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"},
		day:         {"2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"},
		7 * day:     {"2026-11-19T00:00:00Z", "2026-11-26T00:00:00Z"},
		30 * day:    {"2026-11-03T00:00:00Z", "2026-12-03T00:00:00Z"},
		365 * day:   {"2025-12-18T00:00:00Z", "2026-12-18T00:00:00Z"},
	} {
		w := window.Aligned(length)
		from, to := w.PeriodBounds(now)
		if got := [2]string{from.Time().Format(time.RFC3339), to.Time().Format(time.RFC3339)}; got != want {
			t.Errorf("%s: got %v, want %v", w, got, want)
		}
	}
	if from, to := window.Aligned(day).PeriodBounds(-1); from != window.At(time.Unix(-86400, 0)) || to != 0 {
		t.Errorf("before the epoch: got %d to %d, want the day before it", from, to)
	}
}
