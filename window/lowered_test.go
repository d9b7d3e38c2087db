package window_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/transition"
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
			s := large.Do(transition.Take, &r, nil, now, window.Hits{N: 50}, &window.Hold{ID: [12]byte{1}})
			for range 95 {
				now = now.Add(10 * time.Millisecond)
				s, _ = large.Take(s, now, window.Hits{N: 10})
			}
			if settle {
				s = small.Do(transition.Settle, &r, s, now, window.Hits{N: 50}, &window.Hold{ID: [12]byte{1}})
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

// Records under a lowered quota leave what was counted under the larger one, in a state that stays small, and so does a
// settle at more than was held.
func TestRecordUnderLoweredQuota(t *testing.T) {
	t.Parallel()
	for _, quotas := range [][2]int64{{50, 10}, {1000, 100}, {1000, 1}, {155, 20}, {10_000, 900}, {10, 0}} {
		for _, hold := range []time.Duration{0, time.Second} {
			limit := func(quota int64) *window.Compiled {
				return window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(time.Minute), Hold: hold})
			}
			large, small := limit(quotas[0]), limit(quotas[1])
			now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
			var s window.State
			var r window.Result
			if hold > 0 {
				s = large.Do(transition.Take, &r, s, now, window.Hits{N: 1}, &window.Hold{ID: [12]byte{1}})
			}
			for r = large.Check(s, now, window.Hits{N: 1}); r.Allowed; s, r = large.Take(s, now, window.Hits{N: max(1, quotas[0]/100)}) {
				now = now.Add(time.Millisecond)
			}
			for s, r = large.Take(s, now, window.Hits{N: 1}); r.Allowed; s, r = large.Take(s, now, window.Hits{N: 1}) {
			}
			for i := range 3000 {
				now = now.Add(time.Millisecond)
				if hold > 0 && i == 0 {
					s = small.Do(transition.Settle, &r, s, now, window.Hits{N: 3}, &window.Hold{ID: [12]byte{1}})
				}
				n := int64(1 + i%7*(i%11))
				if i%500 == 499 {
					n = 100_000
				}
				if s, _ = small.Record(s, now, window.Hits{N: n}); large.Check(s, now, window.Hits{}).Used < quotas[0] {
					t.Fatalf("quotas %v, hold %v, record %d: got %d used, want %d", quotas, hold, i, large.Check(s, now, window.Hits{}).Used, quotas[0])
				}
				if most := 450; len(s) > most {
					t.Fatalf("quotas %v, hold %v, record %d: got %d words, want at most %d", quotas, hold, i, len(s), most)
				}
			}
		}
	}
}

// Two limits that count in one state, a denied take of either of which counts, admit no more than the larger quota in a
// window, whichever way their takes follow each other.
func TestDeniedCountUnderTwoQuotas(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		quotas    [2]int64
		precision int
	}{
		{[2]int64{1009, 1001}, 0}, {[2]int64{1000, 995}, 0}, {[2]int64{150, 149}, 0}, {[2]int64{1500, 1000}, 0}, {[2]int64{1001, 1000}, 0},
		{[2]int64{1555, 100}, 1000}, {[2]int64{2000, 150}, 1000}, {[2]int64{1009, 505}, 10}, {[2]int64{9, 8}, 10},
	} {
		limit := func(quota int64) *window.Compiled {
			return window.MustCompile(window.Limit{Quota: quota, Window: window.Window{Kind: window.KindSliding, Length: time.Hour, Precision: tc.precision}})
		}
		for seed := range 20 {
			rnd := rand.New(rand.NewPCG(uint64(seed), 4))
			now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
			limits, admitted := [2]*window.Compiled{limit(tc.quotas[0]), limit(tc.quotas[1])}, int64(0)
			var s window.State
			for i := range 10_000 {
				now = now.Add(time.Millisecond)
				l, r := limits[i%2], window.Result{}
				if seed > 0 {
					l = limits[rnd.IntN(2)]
				}
				h := window.Hits{N: 1 + rnd.Int64N(int64(1+seed/5))}
				if s, r = l.Take(s, now, h); r.Allowed {
					admitted += h.N
				} else {
					s, _ = l.Record(s, now, h)
				}
			}
			if admitted > tc.quotas[0] {
				t.Errorf("quotas %v, precision %d, seed %d: got %d admitted in a window, want at most %d", tc.quotas, tc.precision, seed, admitted, tc.quotas[0])
			}
		}
	}
}
