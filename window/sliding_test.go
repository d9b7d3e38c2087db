package window_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// log is the model of a sliding window: every hit, oldest first.
type log struct {
	length time.Duration
	hits   []logged
}

type logged struct {
	at window.Instant
	n  int64
}

func (g *log) instant(now window.Instant) window.Instant {
	if len(g.hits) > 0 {
		return max(now, g.hits[len(g.hits)-1].at)
	}
	return now
}

func (g *log) used(now window.Instant) (used int64) {
	for _, h := range g.hits {
		if h.at > now.Add(-g.length) {
			used += h.n
		}
	}
	return used
}

func (g *log) changes(now window.Instant) (at []window.Instant) {
	for _, h := range g.hits {
		if leaves := h.at.Add(g.length); leaves > now {
			at = append(at, leaves)
		}
	}
	return at
}

func (g *log) forget(now window.Instant) {
	g.hits = slices.DeleteFunc(g.hits, func(h logged) bool { return h.at <= now.Add(-g.length) })
}

func (g *log) add(now window.Instant, n int64) {
	g.forget(now)
	g.hits = append(g.hits, logged{now, n})
}

func (g *log) refund(now window.Instant, n int64) {
	if n > 0 {
		g.forget(now)
	}
	for n > 0 && len(g.hits) > 0 {
		newest := &g.hits[len(g.hits)-1]
		back := min(n, newest.n)
		n -= back
		if newest.n -= back; newest.n == 0 {
			g.hits = g.hits[:len(g.hits)-1]
		}
	}
}

// Up to the precision a sliding window agrees exactly with the definition.
func TestSlidingIsExact(t *testing.T) {
	t.Parallel()
	for _, measure := range []window.Measure{window.Count, window.Sum} {
		for _, quota := range []int64{0, 1, 2, 3, 10, 99, 100} {
			for _, shape := range shapes {
				t.Run(fmt.Sprintf("%v/quota=%d/%s", measure, quota, shape), func(t *testing.T) {
					t.Parallel()
					rnd := rand.New(rand.NewPCG(1, uint64(quota)))
					for _, length := range []time.Duration{3 * time.Microsecond, time.Second, time.Hour} {
						l := window.MustCompile(window.Limit{Quota: quota, Measure: measure, Window: window.Sliding(length)})
						tr := traffic{shape: shape, verbs: mostlyTakes, length: length, most: quota + 1, back: true}
						agree(t, l, &log{length: length}, tr.calls(rnd, 1500))
					}
				})
			}
		}
	}
}

// A precision as large as the quota makes any sliding window exact.
func TestSlidingPrecisionIsExact(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(2, 0))
	l := window.MustCompile(window.Limit{Quota: 1000, Window: window.Window{Kind: window.KindSliding, Length: time.Minute, Precision: 1000}})
	tr := traffic{shape: "edges", verbs: mostlyTakes, length: time.Minute, most: 50, back: true}
	agree(t, l, &log{length: time.Minute}, tr.calls(rnd, 3000))
}

// Above the precision hits are kept in groups of g. At most g-1 hits are counted
// after they have left, none is forgotten, and the quota is never exceeded.
func TestSlidingGroups(t *testing.T) {
	t.Parallel()
	for _, precision := range []int64{1, 2, 7, 100} {
		for _, quota := range []int64{101, 150, 199, 200, 201, 1000, 12345} {
			for _, shape := range shapes {
				t.Run(fmt.Sprintf("precision=%d/quota=%d/%s", precision, quota, shape), func(t *testing.T) {
					t.Parallel()
					rnd := rand.New(rand.NewPCG(uint64(precision), uint64(quota)))
					length := time.Minute
					w := window.Window{Kind: window.KindSliding, Length: length, Precision: int(precision)}
					l := window.MustCompile(window.Limit{Quota: quota, Window: w})
					spare := (quota+precision-1)/precision - 1 // g-1
					tr := traffic{shape: shape, verbs: mostlyTakes, length: length, most: quota/3 + 1}
					withinGroup(t, l, spare, tr.calls(rnd, 2000))
				})
			}
		}
	}
}

// withinGroup checks exact ≤ used ≤ exact+spare after each call, refunds
// included, and that no window holds more than the quota.
func withinGroup(t *testing.T, l *window.Compiled, spare int64, calls []call) {
	t.Helper()
	var s window.State
	exact := &log{length: l.Window.Length}
	all := &log{length: 1 << 50} // what was admitted and not given back
	for i, c := range calls {
		want := exact.used(c.now)
		var r window.Result
		s, r = c.do(l, s)
		if r.Before < want || r.Before > want+spare {
			t.Fatalf("call %d, %s of %d: got %d used before, want %d to %d", i, c.verb, c.hits.N, r.Before, want, want+spare)
		}
		switch {
		case c.verb == take && r.Allowed:
			exact.add(c.now, c.hits.N)
			all.add(c.now, c.hits.N)
		case c.verb == refund:
			back := min(c.hits.N, want)
			exact.refund(c.now, back)
			all.refund(c.now, back)
			if r.Used != max(0, r.Before-c.hits.N) {
				t.Fatalf("call %d, refund of %d: got %d used after %d", i, c.hits.N, r.Used, r.Before)
			}
		}
	}
	if got := admitted(all.hits).most(l.Window.Length); got > l.Quota {
		t.Errorf("got %d hits admitted in a window, want at most %d", got, l.Quota)
	}
}

// Only records can exceed the quota. Then used is at least the quota while as
// many hits are inside, and a refund takes from the excess first.
func TestSlidingRecordPastQuota(t *testing.T) {
	t.Parallel()
	for _, quota := range []int64{1, 3, 100, 150, 1000} {
		rnd := rand.New(rand.NewPCG(4, uint64(quota)))
		l := window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(time.Minute)})
		tr := traffic{shape: "bursts", verbs: []verb{take, record, record}, length: time.Minute, most: quota + 2}
		var s window.State
		exact := &log{length: time.Minute}
		for i, c := range tr.calls(rnd, 2000) {
			var r window.Result
			s, r = c.do(l, s)
			if c.verb == record || r.Allowed {
				exact.add(c.now, c.hits.N)
			}
			if got, want := r.Used, min(quota, exact.used(c.now)); got < want {
				t.Fatalf("quota %d, call %d, %s of %d: got %d used, want at least %d", quota, i, c.verb, c.hits.N, got, want)
			}
		}
	}
	l := window.MustCompile(window.Limit{Quota: 10, Window: window.Sliding(time.Minute)})
	s, _ := l.Record(nil, 0, window.Hits{N: 14})
	s, _ = l.Refund(s, 0, window.Hits{N: 3})
	if r := l.Check(s, 0, window.Hits{N: 1}); r.Allowed {
		t.Errorf("after a record of 14 and a refund of 3 at quota 10: got %+v, want denied", r)
	}
	one := window.MustCompile(window.Limit{Quota: window.MaxHits, Window: window.Window{Kind: window.KindSliding, Length: time.Minute, Precision: 1}})
	fine := window.MustCompile(window.Limit{Quota: 10, Window: window.Window{Kind: window.KindSliding, Length: time.Minute, Precision: 10_000}})
	s, _ = one.Take(nil, 0, window.Hits{N: window.MaxHits})
	for range 2000 {
		s, _ = fine.Record(s, 0, window.Hits{N: window.MaxHits})
		if r := one.Check(s, 0, window.Hits{N: 1}); r.Allowed || r.Used != window.MaxHits {
			t.Fatalf("after records of all hits, in groups of all hits: got %+v, want all used", r)
		}
	}
}
