package window_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// span is the model of fixed and calendar windows: one count from start to end.
type span struct {
	from, to window.Instant
	n        int64
	period   func(now window.Instant) (from, to window.Instant)
}

func (p *span) instant(now window.Instant) window.Instant {
	if p.n > 0 {
		return max(now, p.from)
	}
	return now
}

func (p *span) used(now window.Instant) int64 {
	if p.n == 0 || now >= p.to {
		return 0
	}
	return p.n
}

func (p *span) changes(now window.Instant) []window.Instant {
	if p.used(now) == 0 {
		return nil
	}
	return []window.Instant{p.to}
}

func (p *span) add(now window.Instant, n int64) {
	if p.used(now) == 0 {
		p.n = 0
		p.from, p.to = p.period(now)
	}
	p.n += n
}

func (p *span) refund(now window.Instant, n int64) {
	if n > 0 {
		p.n = max(0, p.used(now)-n)
	}
}

// fixed is the model of a fixed window.
func fixed(length time.Duration) *span {
	return &span{period: func(now window.Instant) (from, to window.Instant) { return now, now.Add(length) }}
}

var anyVerb = []verb{take, take, take, take, check, record, refund}

func TestFixedIsExact(t *testing.T) {
	t.Parallel()
	for _, quota := range []int64{0, 1, 2, 10, 1000, window.Unlimited} {
		for _, shape := range shapes {
			t.Run(fmt.Sprintf("quota=%d/%s", quota, shape), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(1, uint64(quota)))
				for _, length := range []time.Duration{time.Microsecond, time.Second, time.Hour} {
					l := window.MustCompile(window.Limit{Quota: quota, Window: window.Fixed(length)})
					tr := traffic{shape: shape, verbs: anyVerb, length: length, most: max(1, quota+1), back: true}
					agree(t, l, fixed(length), tr.calls(rnd, 1500))
				}
			})
		}
	}
}

// Around an edge a fixed window can admit nearly twice its quota at once. This is
// the demonstration of koala's authors: five passes at a quota of 3 in 5s. A
// sliding window under the same traffic admits at most 3.
func TestKoalaDemonstration(t *testing.T) {
	t.Parallel()
	length := 5 * time.Second
	for _, tc := range []struct {
		window window.Window
		want   int64
	}{
		{window.Fixed(length), 5},
		{window.Sliding(length), 3},
	} {
		l := window.MustCompile(window.Limit{Quota: 3, Window: tc.window})
		var s window.State
		var list admitted
		for start := window.Instant(0); start < window.Instant(60e6); start = start.Add(2 * length) {
			for _, after := range []time.Duration{0, 4900, 4900, 4900, 5000, 5000, 5000, 5000} {
				now := start.Add(after * time.Millisecond)
				var r window.Result
				if s, r = l.Take(s, now, window.Hits{N: 1}); r.Allowed {
					list = append(list, logged{now, 1})
				}
			}
		}
		if got := list.most(length); got != tc.want {
			t.Errorf("%s: got at most %d hits in 5s, want %d", tc.window, got, tc.want)
		}
	}
}
