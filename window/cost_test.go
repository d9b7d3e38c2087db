package window_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// kinds has one limit of each kind, for tests and benchmarks of all of them.
var kinds = []struct {
	name  string
	limit func(quota int64) window.Limit
}{
	{"sliding", func(q int64) window.Limit { return window.Limit{Quota: q, Window: window.Sliding(time.Minute)} }},
	{"cells", func(q int64) window.Limit { return window.Limit{Quota: q, Window: window.Cells(time.Minute, 0)} }},
	{"fixed", func(q int64) window.Limit { return window.Limit{Quota: q, Window: window.Fixed(time.Minute)} }},
	{"calendar", func(q int64) window.Limit { return window.Limit{Quota: q, Window: window.Calendar(window.Hour, nil)} }},
	{"aligned", func(q int64) window.Limit { return window.Limit{Quota: q, Window: window.Aligned(time.Hour)} }},
	{"bucket", func(q int64) window.Limit { return window.Limit{Quota: q, Window: window.Bucket(time.Minute, 0)} }},
	{"after", func(q int64) window.Limit {
		return window.Limit{Quota: q, Window: window.Sliding(time.Minute), After: window.After{Count: 3, Window: window.Calendar(window.Hour, nil)}}
	}},
}

// With the room reserved no verb allocates, for count and sum.
func TestNoAllocation(t *testing.T) { // not parallel: it counts the process's allocations
	for _, k := range kinds {
		for _, measure := range []window.Measure{window.Count, window.Sum} {
			for _, quota := range []int64{5, 100, 12_345} {
				limit := k.limit(quota)
				limit.Measure = measure
				l := window.MustCompile(limit)
				now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
				s := make(window.State, 0, l.MaxWords())
				i := 0
				got := testing.AllocsPerRun(500, func() {
					i++
					now += window.Instant(10e6)
					h := window.Hits{N: int64(1 + i%3)}
					l.Check(s, now, h)
					s, _ = l.Take(s, now, h)
					if i%5 == 0 {
						s, _ = l.Record(s, now, h)
					}
					if i%7 == 0 {
						s, _ = l.Refund(s, now, window.Hits{N: 1})
					}
					l.RecordWords(s, h)
					l.Expires(s)
				})
				if got != 0 {
					t.Errorf("%s, %v, quota %d: got %v allocations, want none", k.name, measure, quota, got)
				}
			}
		}
	}
}

// With the capacity that WordsAfter returns, the state never moves to another array.
func TestWordsAfterIsEnough(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		l := window.MustCompile(k.limit(1000))
		now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
		var s window.State
		for i := range 3000 {
			h := window.Hits{N: int64(1 + i%40)}
			now += window.Instant(i % 700_000)
			reserved := append(make(window.State, 0, l.RecordWords(s, h)), s...)
			s, _ = l.Take(reserved, now, h)
			if len(s) > 0 && &s[0] != &reserved[:1][0] {
				t.Fatalf("%s, call %d: got a new array", k.name, i)
			}
		}
	}
}

// A state has as many words as it uses, and never more than MaxWords, which has
// a bound whatever the quota.
func TestStateWords(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		limit window.Limit
		few   int // words after three hits at different times
		most  int // words at most
	}{
		{window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}, 3, 9},
		{window.Limit{Quota: 100, Window: window.Sliding(time.Hour)}, 3, 104},
		{window.Limit{Quota: 1_000_000, Window: window.Sliding(time.Hour)}, 4, 104},
		{window.Limit{Quota: 1_000_000, Window: window.Cells(time.Hour, 60)}, 6, 64},
		{window.Limit{Quota: 1_000_000, Window: window.Fixed(time.Hour)}, 2, 2},
		{window.Limit{Quota: 1_000_000, Window: window.Calendar(window.Day, nil)}, 2, 2},
		{window.Limit{Quota: 1_000_000, Window: window.Bucket(time.Hour, 0)}, 1, 3},
		{window.Limit{Quota: 10_000, Measure: window.Distinct, Window: window.Sliding(time.Hour)}, 6, 20_002},
	} {
		l := window.MustCompile(tc.limit)
		var s window.State
		for i := range 3 {
			s, _ = l.Take(s, window.Instant(1e9+i*60e6), window.Hits{N: 1, Member: uint64(i)})
		}
		if len(s) > tc.few {
			t.Errorf("%s of %v: got %d words after three hits, want at most %d", tc.limit.Window, tc.limit.Measure, len(s), tc.few)
		}
		if got := l.MaxWords(); got > tc.most {
			t.Errorf("%s of %v: got at most %d words, want %d", tc.limit.Window, tc.limit.Measure, got, tc.most)
		}
	}
}

var sink window.Result

func BenchmarkTake(b *testing.B) {
	for _, k := range kinds {
		for _, quota := range []int64{5, 100, 10_000} {
			b.Run(fmt.Sprintf("%s/quota=%d", k.name, quota), func(b *testing.B) {
				l := window.MustCompile(k.limit(quota))
				s := make(window.State, 0, l.MaxWords())
				now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
				step := window.Instant(50e6 / quota) // a little over the quota: most are admitted
				b.ReportAllocs()
				for b.Loop() {
					now += step
					s, sink = l.Take(s, now, window.Hits{N: 1})
				}
			})
		}
	}
	b.Run("distinct/quota=100", func(b *testing.B) {
		l := window.MustCompile(window.Limit{Quota: 100, Measure: window.Distinct, Window: window.Sliding(time.Minute)})
		s := make(window.State, 0, l.MaxWords())
		now, i := window.Instant(1e12), uint64(0)
		b.ReportAllocs()
		for b.Loop() {
			now += 500_000
			i++
			s, sink = l.Take(s, now, window.Hits{N: 1, Member: i % 120})
		}
	})
}

// BenchmarkDenied measures takes after the quota is used up.
func BenchmarkDenied(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name+"/quota=100", func(b *testing.B) {
			l := window.MustCompile(k.limit(100))
			now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
			s, _ := l.Record(make(window.State, 0, l.MaxWords()), now, window.Hits{N: 110})
			b.ReportAllocs()
			for b.Loop() {
				s, sink = l.Take(s, now, window.Hits{N: 1})
			}
		})
	}
}

// BenchmarkReference measures the least that any limiter does: it compares a
// count, and a period's end.
func BenchmarkReference(b *testing.B) {
	var used, end, now int64
	for b.Loop() {
		now++
		if now >= end {
			used, end = 0, now+60
		}
		if used < 100 {
			used++
		}
	}
	sink.Used = used
}
