package window_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// A state stays valid when the quota, the precision, the number of cells or the
// burst changes. What was counted still counts, up to the new quota. One window
// later the change has no effect any more.
func TestStateSurvivesReload(t *testing.T) {
	t.Parallel()
	sliding := func(quota int64, precision int) window.Limit {
		return window.Limit{Quota: quota, Window: window.Window{Kind: window.KindSliding, Length: time.Minute, Precision: precision}}
	}
	cells := func(quota int64, n int) window.Limit {
		return window.Limit{Quota: quota, Window: window.Cells(time.Minute, n)}
	}
	for _, tc := range []struct{ before, after window.Limit }{
		{sliding(10, 0), sliding(20, 0)},
		{sliding(20, 0), sliding(10, 0)},
		{sliding(100, 0), sliding(1000, 0)},
		{sliding(1000, 0), sliding(100, 0)},
		{sliding(1000, 0), sliding(1001, 0)},
		{sliding(1000, 100), sliding(1000, 7)},
		{sliding(1000, 7), sliding(1000, 1000)},
		{cells(100, 6), cells(100, 60)},
		{cells(100, 60), cells(100, 7)},
		{cells(100, 7), cells(50, 7)},
		{window.Limit{Quota: 10, Window: window.Fixed(time.Minute)}, window.Limit{Quota: 5, Window: window.Fixed(time.Minute)}},
		{window.Limit{Quota: 5, Window: window.Calendar(window.Hour, nil)}, window.Limit{Quota: 10, Window: window.Calendar(window.Hour, nil)}},
	} {
		t.Run(fmt.Sprintf("%v/%d-%d", tc.before.Window, tc.before.Quota, tc.after.Quota), func(t *testing.T) {
			t.Parallel()
			before, after := window.MustCompile(tc.before), window.MustCompile(tc.after)
			for seed := range uint64(50) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
				exact := definition(tc.before.Window)
				var s window.State
				for range 40 {
					now += window.Instant(rnd.Int64N(3e6))
					n := 1 + rnd.Int64N(tc.before.Quota/10+1)
					var r window.Result
					if s, r = before.Take(s, now, window.Hits{N: n}); r.Allowed {
						exact.add(now, n)
					}
				}
				for i := range 40 {
					if got, want := after.Check(s, now, window.Hits{}).Used, exact.used(now); got < min(want, tc.after.Quota) {
						t.Fatalf("seed %d, call %d after the reload: got %d used, want at least %d", seed, i, got, min(want, tc.after.Quota))
					}
					now += window.Instant(rnd.Int64N(3e6))
					n := 1 + rnd.Int64N(tc.after.Quota/10+1)
					var r window.Result
					if s, r = after.Take(s, now, window.Hits{N: n}); r.Allowed {
						exact.add(now, n)
					}
				}
				if at := after.Expires(s); len(s) > 0 && after.Check(s, at, window.Hits{}).Used != 0 {
					t.Fatalf("seed %d: got used hits at the expiry, want none", seed)
				}
			}
		})
	}
}

// definition returns the exact model of a window.
func definition(w window.Window) model {
	switch w.Kind {
	case window.KindFixed:
		return fixed(w.Length)
	case window.KindCalendar:
		return &span{period: w.PeriodBounds}
	}
	return &log{length: w.Length}
}

// When a bucket's burst or quota changes, what is booked stays, rounded up to
// the microsecond.
func TestBucketSurvivesReload(t *testing.T) {
	t.Parallel()
	before := window.MustCompile(window.Limit{Quota: 7, Window: window.Bucket(10*time.Second, 5)})
	s, r := before.Take(nil, 0, window.Hits{N: 5})
	reset := r.ResetAfter
	for _, after := range []window.Limit{
		{Quota: 7, Window: window.Bucket(10*time.Second, 2)},
		{Quota: 7, Window: window.Bucket(10*time.Second, 50)},
		{Quota: 13, Window: window.Bucket(10*time.Second, 5)},
	} {
		compiled := window.MustCompile(after)
		if got := compiled.Check(s, 0, window.Hits{}).ResetAfter; got < reset || got > reset+time.Microsecond {
			t.Errorf("%s, quota %d: got reset after %v, want %v", after.Window, after.Quota, got, reset)
		}
		full := window.Hits{N: after.Window.Burst} // fits once nothing is booked
		if got := compiled.Check(s, 0, full).RetryAfter; got != reset {
			t.Errorf("%s, quota %d: got retry after %v, want %v", after.Window, after.Quota, got, reset)
		}
	}
}

// The identity of a window is its kind, length, zone and anchor, not its quota,
// precision, number of cells or burst: those may change in a reload.
func TestWindowID(t *testing.T) {
	t.Parallel()
	same := [][2]window.Window{
		{window.Sliding(time.Hour), {Kind: window.KindSliding, Length: time.Hour, Precision: 7}},
		{window.Cells(time.Hour, 6), window.Cells(time.Hour, 60)},
		{window.Bucket(time.Hour, 6), window.Bucket(time.Hour, 60)},
		{window.Calendar(window.Day, nil), window.Calendar(window.Day, time.UTC)},
		{{Kind: window.KindCalendar, Period: window.Week, Anchor: 1}, window.Calendar(window.Week, nil)},
	}
	for _, pair := range same {
		if pair[0].ID() != pair[1].ID() {
			t.Errorf("got %q and %q, want one identity", pair[0].ID(), pair[1].ID())
		}
	}
	seen := map[string]window.Window{}
	for _, w := range []window.Window{
		window.Sliding(time.Hour), window.Sliding(2 * time.Hour), window.Fixed(time.Hour), window.Cells(time.Hour, 0), window.Bucket(time.Hour, 0),
		window.Calendar(window.Hour, nil), window.Calendar(window.Day, nil), window.Calendar(window.Day, mustZone(t, "Europe/Berlin")),
		{Kind: window.KindCalendar, Period: window.Week, Anchor: 7}, {Kind: window.KindCalendar, Period: window.Month, Anchor: 7},
	} {
		if other, ok := seen[w.ID()]; ok {
			t.Errorf("got %q for both %s and %s, want two identities", w.ID(), w, other)
		}
		seen[w.ID()] = w
	}
}

// Whatever quotas, precisions, cells and bursts follow each other, results stay
// in bounds and nothing panics. The laws of a single limit need not hold.
func TestReloadAnything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2500) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		g := &source{randomBytes(rnd, 2000)}
		l := g.limit()
		compiled, err := window.Compile(l)
		if err != nil {
			continue
		}
		var s window.State
		now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
		for len(g.data) > 0 {
			if next := changed(l, g); g.below(8) == 0 && next.Validate() == nil {
				l, compiled = next, window.MustCompile(next)
			}
			c := g.call(&l, now, 0)
			now = c.now
			room := compiled.RecordWords(s, c.hits)
			var r window.Result
			s, r = c.do(compiled, s)
			if r.Used < 0 || r.Before < 0 || r.Remaining > r.Quota || r.Allowed != (r.RetryAfter == 0) || room < 0 {
				t.Fatalf("seed %d, %+v, %s of %d: got %+v", seed, l, c.verb, c.hits.N, r)
			}
			if l.Quota != window.Unlimited && r.Remaining < 0 {
				t.Fatalf("seed %d, %+v, %s of %d: got %+v", seed, l, c.verb, c.hits.N, r)
			}
			if at := compiled.Expires(s); at < latestInstant && compiled.Check(s, at, window.Hits{}).Used != 0 {
				t.Fatalf("seed %d, %+v: got used hits at the expiry, want none", seed, l)
			}
			if at := compiled.Read(s, c.now).At.Add(r.RetryAfter); r.RetryAfter > 0 && at < latestInstant && !compiled.Check(s, at, c.hits).Allowed {
				t.Fatalf("seed %d, %+v, %s of %d: got %+v, and denied again after that long", seed, l, c.verb, c.hits.N, r)
			}
		}
	}
}

// changed returns l with other values of the fields that are not part of its
// identity.
func changed(l window.Limit, g *source) window.Limit {
	if l.Quota != window.Unlimited {
		l.Quota = someQuotas[g.below(len(someQuotas)-1)]
	}
	switch l.Window.Kind {
	case window.KindSliding:
		l.Window.Precision = someCounts[g.below(len(someCounts))]
	case window.KindCells:
		l.Window.N = someCounts[g.below(len(someCounts))]
	case window.KindBucket:
		l.Window.Burst = int64(someCounts[g.below(len(someCounts))])
	}
	if l.After.Count > 0 {
		l.After.Count = int64(1 + g.below(40))
	}
	return l
}
