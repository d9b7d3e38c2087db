package window_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// TestAfterIsExact compares takes and waits with two models: hits below the count
// go to the base alone, those from the count on to the limit too.
func TestAfterIsExact(t *testing.T) {
	t.Parallel()
	limits := []struct {
		window window.Window
		model  func() model
	}{
		{window.Sliding(2 * time.Second), func() model { return &log{length: 2 * time.Second} }},
		{window.Fixed(2 * time.Second), func() model { return fixed(2 * time.Second) }},
	}
	bases := []struct {
		window window.Window
		model  func() model
	}{
		{window.Fixed(time.Minute), func() model { return fixed(time.Minute) }},
		{window.Sliding(time.Minute), func() model { return &log{length: time.Minute} }},
		{window.Sliding(time.Second), func() model { return &log{length: time.Second} }},
	}
	for _, limit := range limits {
		for _, base := range bases {
			for _, count := range []int64{1, 13, 1500} {
				// The count is exact whatever the quota, although a state cannot
				// keep as many hits as count and quota together.
				for _, quota := range []int64{1, 3, 100, 100_000} {
					if limit.window.Kind == window.KindSliding && quota > window.DefaultPrecision {
						continue // in groups
					}
					l := window.MustCompile(window.Limit{Quota: quota, Window: limit.window, After: window.After{Count: count, Window: base.window}})
					for _, shape := range shapes {
						rnd := rand.New(rand.NewPCG(uint64(count), uint64(quota)))
						tr := traffic{shape: shape, verbs: []verb{take, take, take, check}, length: 2 * time.Second, most: min(count+quota, 300)}
						afterAgrees(t, l, base.model(), limit.model(), tr.calls(rnd, 400))
					}
				}
			}
		}
	}
}

func afterAgrees(t *testing.T, l *window.Compiled, base, inner model, calls []call) {
	t.Helper()
	quota, count := l.Quota, l.After.Count
	var s window.State
	for i, c := range calls {
		n := c.hits.N
		part := func(at window.Instant) int64 { return min(n, max(0, base.used(at)+n-count+1)) }
		fits := func(at window.Instant) bool { return part(at) == 0 || inner.used(at)+part(at) <= quota }
		want := window.Result{Quota: quota, Before: inner.used(c.now)}
		if want.Allowed = fits(c.now); !want.Allowed {
			want.RetryAfter = window.Never
			for _, at := range slices.Sorted(slices.Values(append(base.changes(c.now), inner.changes(c.now)...))) {
				if fits(at) {
					want.RetryAfter = at.Sub(c.now)
					break
				}
			}
		} else if above := part(c.now); c.verb == take {
			base.add(c.now, n)
			if above > 0 {
				inner.add(c.now, above)
			}
		}
		want.Used = inner.used(c.now)
		want.Remaining = quota - want.Used
		var got window.Result
		s, got = c.do(l, s)
		got.ResetAfter = 0
		if got != want {
			t.Fatalf("%v after %d in %v, quota %d, call %d, %s of %d:\ngot  %+v\nwant %+v",
				l.Window, count, l.After.Window, quota, i, c.verb, n, got, want)
		}
	}
}

// Above MaxEntries the base counts in groups. It can reach the count early, by
// less than a group, and never late.
func TestAfterLargeCounts(t *testing.T) {
	t.Parallel()
	const count, group = 25_000, 3
	l := window.MustCompile(window.Limit{Quota: 1, Window: window.Fixed(time.Hour), After: window.After{Count: count, Window: window.Sliding(time.Minute)}})
	if base, _ := l.Parts(); base.Group() != group {
		t.Fatalf("got groups of %d, want %d", base.Group(), group)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	base := &log{length: time.Minute}
	var s window.State
	now := noon
	for range 3000 {
		now += window.Instant(rnd.Int64N(50_000))
		h := window.Hits{N: 1 + rnd.Int64N(30)}
		held := base.used(now)
		var r window.Result
		s, r = l.Record(s, now, h)
		base.add(now, h.N)
		if early, late := r.Used > 0 && held+h.N < count-(group-1), r.Used == 0 && held+h.N >= count; early || late {
			t.Fatalf("%d hits: got %d of them the limit's, want the first at %d or up to %d before", held+h.N, r.Used, count, group-1)
		}
		if r.Used > 0 {
			return
		}
	}
	t.Error("the count was never reached")
}

// Hits above MaxHits are denied like any others above the quota.
func TestAfterMoreThanCanBeCounted(t *testing.T) {
	t.Parallel()
	l := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Minute), After: window.After{Count: 3, Window: window.Fixed(time.Hour)}})
	s, _ := l.Take(nil, 0, window.Hits{N: 5})
	for _, n := range []int64{window.MaxHits, window.MaxHits + 1, math.MaxInt64} {
		if r := l.Check(s, 0, window.Hits{N: n}); r.Allowed || r.RetryAfter != window.Never {
			t.Errorf("%d hits: got %+v, want never", n, r)
		}
	}
}

// A refund takes the newest hits back from both windows.
func TestAfterRefund(t *testing.T) {
	t.Parallel()
	l := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Minute), After: window.After{Count: 3, Window: window.Fixed(time.Hour)}})
	one := window.Hits{N: 1}
	s, r := l.Take(nil, 0, window.Hits{N: 4}) // the third and the fourth are the limit's
	if r.Used != 2 {
		t.Fatalf("four hits: got %d used, want 2", r.Used)
	}
	if s, r = l.Refund(s, 0, one); r.Used != 1 {
		t.Errorf("a refund: got %d used, want 1", r.Used)
	}
	if s, r = l.Refund(s, 0, window.Hits{N: 2}); r.Used != 0 {
		t.Errorf("two more: got %d used, want 0", r.Used)
	}
	if s, r = l.Take(s, 0, one); r.Used != 0 {
		t.Errorf("the second hit again: got %d used, want 0", r.Used)
	}
	if _, r = l.Take(s, 0, one); r.Used != 1 {
		t.Errorf("the third hit again: got %d used, want 1", r.Used)
	}
}

// A refund finds the limit's hits although count and quota together are more
// than the base keeps.
func TestAfterRefundOfMany(t *testing.T) {
	t.Parallel()
	l := window.MustCompile(window.Limit{Quota: 100_000, Measure: window.Sum, Window: window.Fixed(time.Hour), After: window.After{Count: 1000, Window: window.Sliding(time.Minute)}})
	for _, step := range []struct {
		taken, refunded int64
		before, after   int64 // used
	}{
		{1500, 600, 501, 0},
		{1500, 100, 501, 401},
		{30_000, 5000, 29_001, 24_001},
		{30_000, 9001, 29_001, 20_000},
		{30_000, 20_000, 29_001, 20_000}, // 9001 of them, the base has no more
	} {
		s, r := l.Take(nil, noon, window.Hits{N: step.taken})
		if r.Used != step.before {
			t.Errorf("%d taken: got %d used, want %d", step.taken, r.Used, step.before)
		}
		if _, r = l.Refund(s, noon, window.Hits{N: step.refunded}); r.Used != step.after {
			t.Errorf("%d of %d given back: got %d used, want %d", step.refunded, step.taken, r.Used, step.after)
		}
	}
}
