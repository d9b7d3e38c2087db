package window_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// Counts stop at 2^53-1, whatever is added to them, and refunds lower them again.
func TestCountsStop(t *testing.T) {
	t.Parallel()
	for _, limit := range []window.Limit{
		{Quota: window.MaxHits, Window: window.Sliding(time.Minute)},
		{Quota: window.MaxHits, Window: window.Cells(time.Minute, 6)},
		{Quota: window.Unlimited, Window: window.Cells(time.Minute, 6)},
		{Quota: window.MaxHits, Window: window.Fixed(time.Minute)},
		{Quota: window.Unlimited, Window: window.Fixed(time.Minute)},
		{Quota: window.Unlimited, Window: window.Calendar(window.Day, nil)},
	} {
		limit.Measure = window.Sum
		l := window.MustCompile(limit)
		var s window.State
		var r window.Result
		for _, n := range []int64{1 << 52, 1 << 52, 1, window.MaxHits, math.MaxInt64} {
			s, r = l.Record(s, noon, window.Hits{N: n})
		}
		if r.Used != window.MaxHits {
			t.Errorf("%s, quota %d: got %d used, want %d", limit.Window, limit.Quota, r.Used, window.MaxHits)
		}
		if r := l.Check(s, noon, window.Hits{N: 1}); limit.Quota != window.Unlimited && r.Allowed {
			t.Errorf("%s: one more: got %+v, want denied", limit.Window, r)
		}
		if _, r = l.Refund(s, noon, window.Hits{N: math.MaxInt64}); r.Used != 0 {
			t.Errorf("%s, quota %d: got %d used after a refund of all, want 0", limit.Window, limit.Quota, r.Used)
		}
	}
}

// Instants before 1970 and after 2155 count as the first and the last.
func TestInstantsOutOfRange(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		l := window.MustCompile(k.limit(5))
		for _, tc := range []struct{ now, as window.Instant }{
			{-1, 0},
			{math.MinInt64, 0},
			{latestInstant + 1, latestInstant},
			{math.MaxInt64, latestInstant},
		} {
			s, r := l.Take(nil, tc.now, window.Hits{N: 5})
			if _, want := l.Take(nil, tc.as, window.Hits{N: 5}); r != want {
				t.Errorf("%s at %d: got %+v, want %+v", k.name, tc.now, r, want)
			}
			if r := l.Check(s, tc.now, window.Hits{N: 4}); r.Allowed {
				t.Errorf("%s at %d: four more: got %+v, want denied", k.name, tc.now, r)
			}
		}
	}
}

// With negative hits every verb only looks.
func TestNegativeHits(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		l := window.MustCompile(k.limit(5))
		s, before := l.Take(nil, noon, window.Hits{N: 4})
		for _, v := range []verb{take, check, record, refund} {
			var r window.Result
			if s, r = (call{v, noon, window.Hits{N: math.MinInt64}}).do(l, s); !r.Allowed || r.Used != before.Used {
				t.Errorf("%s, %s: got %+v, want %d used as before", k.name, v, r, before.Used)
			}
		}
	}
}
