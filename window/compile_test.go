package window_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

func TestCompiled(t *testing.T) {
	t.Parallel()
	day, month := window.Calendar(window.Day, nil), window.Calendar(window.Month, mustZone(t, "Europe/Berlin"))
	month.Anchor = 5
	for _, tc := range []struct {
		limit      window.Limit
		capacity   int64
		onCalendar bool
		text       string // of the window
	}{
		{window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}, 5, false, "sliding 1h"},
		{window.Limit{Quota: 5, Window: window.Cells(24*time.Hour, 0)}, 5, false, "cells 24h/60"},
		{window.Limit{Quota: window.Unlimited, Window: window.Fixed(90 * time.Second)}, window.Unlimited, false, "fixed 1m30s"},
		{window.Limit{Quota: 5, Window: day}, 5, true, "day UTC"},
		{window.Limit{Quota: 5, Window: month}, 5, true, "month Europe/Berlin from day 5"},
		{window.Limit{Quota: 5, Measure: window.Distinct, Window: day}, 5, true, "day UTC"},
		{window.Limit{Quota: 60, Window: window.Bucket(time.Minute, 0)}, 60, false, "bucket 1m"},
		{window.Limit{Quota: 60, Window: window.Bucket(time.Minute, 90)}, 90, false, "bucket 1m burst 90"},
		{window.Limit{Quota: 5, Window: window.Sliding(time.Hour), After: window.After{Count: 3, Window: day}}, 5, true, "sliding 1h"},
		{window.Limit{Quota: 5, Window: day, After: window.After{Count: 3, Window: window.Fixed(time.Hour)}}, 5, true, "day UTC"},
	} {
		l := window.MustCompile(tc.limit)
		if *l.Limit != tc.limit {
			t.Errorf("got %+v, want %+v", *l.Limit, tc.limit)
		}
		if got := l.Capacity(); got != tc.capacity {
			t.Errorf("%+v: got capacity %d, want %d", tc.limit, got, tc.capacity)
		}
		if got := l.OnCalendar(); got != tc.onCalendar {
			t.Errorf("%+v: got on calendar %v, want %v", tc.limit, got, tc.onCalendar)
		}
		if got := tc.limit.Window.String(); got != tc.text {
			t.Errorf("%+v: got %q, want %q", tc.limit, got, tc.text)
		}
		inner := tc.limit
		inner.After = window.After{}
		base, rest := l.Parts()
		if got := *rest.Limit; got != inner {
			t.Errorf("%+v: got inner limit %+v, want %+v", tc.limit, got, inner)
		}
		if got, want := base != nil, tc.limit.After.Count > 0; got != want {
			t.Errorf("%+v: got a base %v, want %v", tc.limit, got, want)
		}
	}
	if got := (window.Window{Kind: 9, Length: time.Hour}).String(); got != "unknown 1h" {
		t.Errorf("got %q for an unknown kind", got)
	}
	if got := window.Measure(9).String(); got != "unknown" {
		t.Errorf("got %q for an unknown measure", got)
	}
}

func TestMustCompilePanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("got no panic for an invalid limit")
		}
	}()
	window.MustCompile(window.Limit{})
}

// Read returns the numbers of a check, the cells, and an instant that is not
// before the latest one in the state.
func TestRead(t *testing.T) {
	t.Parallel()
	hour := window.Instant(time.Hour / time.Microsecond)
	for _, tc := range []struct {
		limit window.Limit
		cells []window.Cell
		last  int64 // hits in the last 30 minutes
	}{
		{window.Limit{Quota: 9, Window: window.Sliding(time.Hour)}, []window.Cell{{Start: noon, Hits: 3}}, 3},
		{window.Limit{Quota: 9, Window: window.Cells(time.Hour, 2)}, []window.Cell{{Start: noon, Length: 30 * time.Minute, Hits: 3}}, 3},
		{window.Limit{Quota: 9, Window: window.Fixed(time.Hour)}, []window.Cell{{Start: noon, Length: time.Hour, Hits: 3}}, 3},
		{window.Limit{Quota: 9, Window: window.Calendar(window.Hour, nil)}, []window.Cell{{Start: noon, Length: time.Hour, Hits: 3}}, 3},
		{window.Limit{Quota: 9, Window: window.Bucket(time.Hour, 0)}, nil, 3},
		{window.Limit{Quota: 9, Measure: window.Distinct, Window: window.Sliding(time.Hour)}, []window.Cell{{Start: noon, Hits: 1}}, 1},
		{window.Limit{Quota: 9, Measure: window.Distinct, Window: window.Fixed(time.Hour)}, []window.Cell{{Start: noon, Length: time.Hour, Hits: 1}}, 1},
		{window.Limit{Quota: 9, Window: window.Cells(time.Hour, 2), After: window.After{Count: 2, Window: window.Fixed(time.Hour)}}, nil, 2},
	} {
		l := window.MustCompile(tc.limit)
		s, _ := l.Take(nil, noon, window.Hits{N: 3})
		r := l.Read(s, noon)
		if r.Result != l.Check(s, noon, window.Hits{}) || r.At != noon {
			t.Errorf("%+v: got %+v", tc.limit, r)
		}
		if !slices.Equal(r.History, tc.cells) {
			t.Errorf("%+v: got history %+v, want %+v", tc.limit, r.History, tc.cells)
		}
		if got := r.Count(30 * time.Minute); got != tc.last {
			t.Errorf("%+v: got %d hits in the last 30 minutes, want %d", tc.limit, got, tc.last)
		}
		if r := l.Read(s, noon+2*hour); r.Used != 0 || len(r.History) > 0 || r.Count(time.Hour) != 0 {
			t.Errorf("%+v, two hours later: got %+v", tc.limit, r)
		}
		if r := l.Read(nil, noon); r.Used != 0 || len(r.History) > 0 || r.Count(time.Hour) != 0 {
			t.Errorf("%+v, unused: got %+v", tc.limit, r)
		}
	}
}

// Shares are rounded up, and stay usable where Validate would refuse them.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ limit, want window.Limit }{
		{window.Limit{Quota: 10, Window: window.Sliding(time.Hour)}, window.Limit{Quota: 4, Window: window.Sliding(time.Hour)}},
		{window.Limit{Window: window.Sliding(time.Hour)}, window.Limit{Window: window.Sliding(time.Hour)}},
		{window.Limit{Quota: window.Unlimited, Window: window.Fixed(time.Hour)}, window.Limit{Quota: window.Unlimited, Window: window.Fixed(time.Hour)}},
		{window.Limit{Quota: 60, Window: window.Bucket(time.Hour, 10)}, window.Limit{Quota: 20, Window: window.Bucket(time.Hour, 4)}},
		{window.Limit{Quota: 1_000_000, Window: window.Bucket(24*time.Hour, 0)}, window.Limit{Quota: 333_334, Window: window.Bucket(24*time.Hour, 0)}},
		{
			window.Limit{Quota: 3, Window: window.Sliding(time.Hour), After: window.After{Count: 31, Window: window.Fixed(time.Hour)}},
			window.Limit{Quota: 1, Window: window.Sliding(time.Hour), After: window.After{Count: 11, Window: window.Fixed(time.Hour)}},
		},
	} {
		share := window.MustCompile(tc.limit).Share(3)
		if got := *share.Limit; got != tc.want {
			t.Errorf("%+v: got share %+v, want %+v", tc.limit, got, tc.want)
		}
		fits := max(share.Capacity(), 0)
		if s, r := share.Take(nil, noon, window.Hits{N: fits}); !r.Allowed || share.Check(s, noon, window.Hits{N: tc.limit.After.Count + fits + 1}).Allowed != (tc.limit.Quota == window.Unlimited) {
			t.Errorf("%+v: got %+v for the capacity, and one more", tc.limit, r)
		}
	}
}

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tc := range []struct {
		limit window.Limit
		want  func(l *window.Limit)
	}{
		{window.Limit{Quota: 5, Window: window.Fixed(time.Hour)}, func(*window.Limit) {}},
		{window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}, func(l *window.Limit) { l.Window.Precision = 100 }},
		{window.Limit{Quota: 5, Window: window.Cells(time.Hour, 0)}, func(l *window.Limit) { l.Window.N = 60 }},
		{window.Limit{Quota: 5, Window: window.Cells(time.Hour, 7)}, func(*window.Limit) {}},
		{window.Limit{Quota: 5, Window: window.Bucket(time.Hour, 0)}, func(l *window.Limit) { l.Window.Burst = 5 }},
		{window.Limit{Quota: 2000, Window: window.Held(time.Hour)}, func(l *window.Limit) { l.MaxHolds = 2000 }},
		{window.Limit{Quota: 5, Window: window.Fixed(time.Hour), Hold: time.Minute}, func(l *window.Limit) { l.MaxHolds = 1000 }},
		{
			window.Limit{Quota: 5, Window: window.Fixed(time.Hour), After: window.After{Count: 3, Window: window.Sliding(time.Minute)}},
			func(l *window.Limit) { l.After.Window.Precision = 100 },
		},
		{
			window.Limit{Quota: 5, Window: window.Fixed(time.Hour), Ban: window.Ban{For: 2 * day}},
			func(l *window.Limit) { l.Ban = window.Ban{For: 2 * day, Factor: 1, Most: 2 * day, Forget: day} },
		},
	} {
		want := tc.limit
		tc.want(&want)
		if got := tc.limit.WithDefaults(); got != want {
			t.Errorf("%+v: got %+v, want %+v", tc.limit, got, want)
		}
	}
}
