package window_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// meter is the model of a bucket: a leaky bucket, which keeps the hits in it as a
// fraction and leaks the quota in each window. The limiter books time instead.
type meter struct {
	l     *window.Compiled
	level *big.Rat
	at    window.Instant
}

func newMeter(l *window.Compiled) *meter { return &meter{l: l, level: new(big.Rat)} }

// leaked returns how many hits flow out in d.
func (m *meter) leaked(d int64) *big.Rat {
	r := big.NewRat(d, m.l.Window.Length.Microseconds())
	return r.Mul(r, big.NewRat(m.l.Quota, 1))
}

func (m *meter) levelAt(now window.Instant) *big.Rat {
	level := new(big.Rat).Sub(m.level, m.leaked(int64(now-m.at)))
	if level.Sign() < 0 {
		return level.SetInt64(0)
	}
	return level
}

func (m *meter) set(now window.Instant, level *big.Rat) {
	if level.Sign() < 0 {
		level.SetInt64(0)
	}
	m.level, m.at = level, now
}

// wait returns the fewest whole microseconds in which level falls to most.
func (m *meter) wait(level *big.Rat, most int64) time.Duration {
	over := new(big.Rat).Sub(level, big.NewRat(most, 1))
	if over.Sign() <= 0 {
		return 0
	}
	over.Mul(over, big.NewRat(m.l.Window.Length.Microseconds(), m.l.Quota))
	return time.Duration(ceil(over)) * time.Microsecond
}

func ceil(r *big.Rat) int64 {
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

func (m *meter) answer(c call) window.Result {
	burst := m.l.Window.Burst
	n := c.hits.N
	level := m.levelAt(c.now)
	r := window.Result{Allowed: true, Quota: burst, Before: min(burst, ceil(level))}
	delta := big.NewRat(n, 1)
	switch c.verb {
	case take, check:
		if n > burst {
			r.Allowed, r.RetryAfter = false, window.Never
		} else if n > 0 {
			r.RetryAfter = m.wait(level, burst-n)
			r.Allowed = r.RetryAfter == 0
		}
		if c.verb == take && r.Allowed {
			m.set(c.now, level.Add(level, delta))
		}
	case record:
		m.set(c.now, level.Add(level, delta))
	case refund:
		m.set(c.now, level.Sub(level, delta))
	}
	level = m.levelAt(c.now)
	r.Used = min(burst, ceil(level))
	r.Remaining = burst - r.Used
	r.ResetAfter = m.wait(level, 0)
	return r
}

func TestBucketIsExact(t *testing.T) {
	t.Parallel()
	for _, quota := range []int64{1, 2, 3, 7, 60, 999, 1_000_003} {
		for _, burst := range []int64{1, 2, 5, 100} {
			for _, length := range []time.Duration{time.Microsecond, 7 * time.Microsecond, time.Second, 10 * time.Second, 24 * time.Hour} {
				t.Run(fmt.Sprintf("quota=%d/burst=%d/%v", quota, burst, length), func(t *testing.T) {
					t.Parallel()
					rnd := rand.New(rand.NewPCG(uint64(quota), uint64(burst)))
					l := window.MustCompile(window.Limit{Quota: quota, Window: window.Bucket(length, burst)})
					model := newMeter(l)
					interval := max(2*time.Microsecond, length/time.Duration(quota))
					tr := traffic{shape: "edges", verbs: anyVerb, length: interval, most: burst + 1}
					var s window.State
					for i, c := range tr.calls(rnd, 300) {
						want := model.answer(c)
						var got window.Result
						if s, got = c.do(l, s); got != want {
							t.Fatalf("call %d, %s of %d at %d:\ngot  %+v\nwant %+v", i, c.verb, c.hits.N, c.now, got, want)
						}
					}
				})
			}
		}
	}
}

// A day of greedy traffic at seven in ten seconds is admitted exactly, to
// burst + ⌊t·quota/W⌋, although a hit takes 1428571.428… microseconds. A burst
// of one loses the fraction at each hit, because the bucket has to be empty.
func TestBucketGreedyDay(t *testing.T) {
	t.Parallel()
	for _, burst := range []int64{1, 2, 3, 7, 1000} {
		l := window.MustCompile(window.Limit{Quota: 7, Window: window.Bucket(10*time.Second, burst)})
		start := window.At(time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC))
		end := start.Add(24 * time.Hour)
		var s window.State
		var at []window.Instant
		for now := start; now <= end; {
			var r window.Result
			if s, r = l.Take(s, now, window.Hits{N: 1}); r.Allowed {
				at = append(at, now)
				continue
			}
			now = now.Add(r.RetryAfter)
		}
		want := burst + 86400*7/10
		if burst == 1 {
			want = 1 + 86_400_000_000/1_428_572
		}
		if got := int64(len(at)); got != want {
			t.Errorf("burst %d: got %d hits admitted in a day, want %d", burst, got, want)
		}
		withinRate(t, l, at)
	}
}

// Over any span t at most burst + ⌊t·quota/W⌋ hits are admitted, whatever the
// traffic.
func TestBucketSpans(t *testing.T) {
	t.Parallel()
	for _, quota := range []int64{1, 3, 7, 13} {
		for _, shape := range shapes {
			rnd := rand.New(rand.NewPCG(7, uint64(quota)))
			l := window.MustCompile(window.Limit{Quota: quota, Window: window.Bucket(10*time.Second, 5)})
			tr := traffic{shape: shape, verbs: []verb{take}, length: 10 * time.Second / time.Duration(quota), most: 2, back: true}
			var s window.State
			var at []window.Instant
			latest := window.Instant(0)
			for _, c := range tr.calls(rnd, 2000) {
				var r window.Result
				latest = max(latest, c.now)
				if s, r = c.do(l, s); r.Allowed {
					for range c.hits.N {
						at = append(at, latest)
					}
				}
			}
			withinRate(t, l, at)
		}
	}
}

// withinRate checks every span between two admitted hits: hits j to i must be at
// most burst + ⌊t·quota/W⌋. Without rounding, in units of hits·W, that is
// (i+1-j)·W - t·quota ≤ burst·W. One pass keeps the worst j.
func withinRate(t *testing.T, l *window.Compiled, at []window.Instant) {
	t.Helper()
	w, worst := l.Window.Length.Microseconds(), int64(-1<<62)
	for i, now := range at {
		since := int64(now - at[0])
		worst = max(worst, since*l.Quota-int64(i)*w)
		if over := int64(i+1)*w - since*l.Quota + worst; over > l.Window.Burst*w {
			t.Fatalf("hit %d at %v: got more than %d + t·%d/%v hits in the span before it", i, now.Time(), l.Window.Burst, l.Quota, l.Window.Length)
		}
	}
}

// A clock that runs backwards makes a bucket no more generous.
func TestBucketBackwards(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(8, 0))
	l := window.MustCompile(window.Limit{Quota: 7, Window: window.Bucket(10*time.Second, 5)})
	tr := traffic{shape: "steady", verbs: anyVerb, length: 5 * time.Second, most: 5}
	var s window.State
	for _, c := range tr.calls(rnd, 1000) {
		s, _ = c.do(l, s)
		now := l.Check(s, c.now, window.Hits{})
		before := l.Check(s, c.now-window.Instant(rnd.Int64N(20e6)), window.Hits{})
		if before.Remaining > now.Remaining {
			t.Fatalf("got %d left before now, want at most the %d of now", before.Remaining, now.Remaining)
		}
	}
}
