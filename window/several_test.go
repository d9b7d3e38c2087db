package window_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// A key can be counted under several quotas. Each admits no more than it states, whatever the others
// record, and denies less than a group of the largest early.
func TestSeveralQuotas(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, quotas := range [][]int64{{450, 77}, {60, 7}, {1000, 999, 10}, {101, 100}} {
		var limits []*window.Compiled
		for _, q := range quotas {
			limits = append(limits, window.MustCompile(window.Limit{Quota: q, Highest: quotas[0], Window: window.Sliding(time.Minute)}))
		}
		group := (quotas[0] + 99) / 100
		var s window.State
		var hits []window.Instant // of all that was counted
		early := int64(0)
		for now := window.Instant(1e6); now < 3e9; now += window.Instant(r.Int64N(200_000)) {
			hits = slices.DeleteFunc(hits, func(at window.Instant) bool { return at <= now-60e6 })
			i := r.IntN(len(quotas))
			n, used := 1+r.Int64N(3), int64(len(hits))
			counted := true
			if r.IntN(8) == 0 {
				if used+n > quotas[0] {
					continue // hits past the largest quota are forgotten
				}
				s, _ = limits[i].Record(s, now, window.Hits{N: n})
			} else {
				var res window.Result
				s, res = limits[i].Take(s, now, window.Hits{N: n})
				if counted = res.Allowed; counted && used+n > quotas[i] {
					t.Fatalf("%v: %d of %d used, and %d more were admitted", quotas, used, quotas[i], n)
				}
				if !counted {
					early = max(early, quotas[i]-used-n+1)
				}
			}
			for ; counted && n > 0; n-- {
				hits = append(hits, now)
			}
		}
		if early > group-1 {
			t.Errorf("%v: %d hits were denied early, want less than a group of %d", quotas, early, group)
		}
	}
}

// The same with members.
func TestSeveralQuotasOfMembers(t *testing.T) {
	t.Parallel()
	for _, w := range []window.Window{window.Sliding(time.Hour), window.Fixed(time.Hour), window.Calendar(window.Day, nil)} {
		limit := func(q int64) *window.Compiled {
			return window.MustCompile(window.Limit{Quota: q, Highest: 30, Measure: window.Distinct, Window: w})
		}
		many, few := limit(30), limit(3)
		var s window.State
		var res window.Result
		for m := range uint64(20) {
			s, _ = many.Take(s, 1e6, window.Hits{N: 1, Member: m})
		}
		if s, res = few.Record(s, 2e6, window.Hits{N: 1, Member: 99}); res.Used != 21 || res.Remaining != 0 {
			t.Errorf("%v: got %+v, want 21 used", w.Kind, res)
		}
		if res = many.Check(s, 2e6, window.Hits{N: 1, Member: 98}); res.Remaining != 9 {
			t.Errorf("%v: got %+v, want 9 left", w.Kind, res)
		}
	}
}

// Two limits with groups of sizes that have nothing in common, such as those of the rules before and after a change, can
// take turns on one state: the hits leave the window about when they should.
func TestGroupsOfTwoQuotas(t *testing.T) {
	t.Parallel()
	for _, quotas := range [][2]int64{{10_009, 10_000}, {100_000, 86_400}, {7_200, 5_000}, {250, 150}, {20_000, 10_000}, {31_333, 10_000}, {10_333, 1000}} {
		var limits [2]*window.Compiled
		for i, q := range quotas {
			limits[i] = window.MustCompile(window.Limit{Quota: q, Window: window.Sliding(time.Minute)})
		}
		group := (quotas[0] + 99) / 100 * 3 / 2 // groups of the smaller quota join whole
		var s window.State
		var hits []window.Instant
		every := window.Instant(60e6 * 10 / (8 * quotas[1])) // 80 % of the smaller quota
		for i := range 5 * quotas[1] {
			now := 1e9 + window.Instant(i)*every
			for len(hits) > 0 && hits[0] <= now-60e6 {
				hits = hits[1:]
			}
			var r window.Result
			if s, r = limits[i/3%2].Take(s, now, window.Hits{N: 1}); !r.Allowed || r.Before-int64(len(hits)) >= group {
				t.Fatalf("%v: take %d: got %+v after %d hits", quotas, i, r, len(hits))
			}
			hits = append(hits, now)
		}
	}
}

// Two limits that cut a window into different numbers of cells can take turns on one state: it dates no hit after now, so all of
// them leave a window and a cell after the last one.
func TestCellsOfTwoWidths(t *testing.T) {
	t.Parallel()
	for _, n := range [][2]int{{60, 7}, {60, 59}, {24, 25}, {60, 12}} {
		var limits [2]*window.Compiled
		for i := range limits {
			limits[i] = window.MustCompile(window.Limit{Quota: 10_000, Window: window.Cells(time.Hour, n[i])})
		}
		now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
		var s window.State
		for i := range 1000 {
			now = now.Add(time.Second)
			s, _ = limits[i%2].Take(s, now, window.Hits{N: 1})
		}
		after := now.Add(time.Hour + time.Hour/time.Duration(n[1]))
		if r := limits[0].Check(s, after, window.Hits{N: 1}); r.Used != 0 {
			t.Errorf("%v cells: got %d used after %v, want 0", n, r.Used, time.Duration(after-now)*time.Microsecond)
		}
	}
}
