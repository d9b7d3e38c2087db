package window_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// memberModel is the model of distinct members: a map from members to their dates and
// uses. All of them leave at the end of a period, or each leaves with its newest
// use.
type memberModel struct {
	l      *window.Compiled
	inside map[uint64]*memberUses
	to     window.Instant // the period's end; not for sliding windows
}

type memberUses struct {
	newest window.Instant
	uses   int
}

func (g *memberModel) sliding() bool { return g.l.Window.Kind == window.KindSliding }

// leaves returns the instant at which the member's newest use has left.
func (g *memberModel) leaves(m *memberUses) window.Instant {
	if g.sliding() {
		return m.newest.Add(g.l.Window.Length)
	}
	return g.to
}

func (g *memberModel) forget(now window.Instant) {
	maps.DeleteFunc(g.inside, func(_ uint64, m *memberUses) bool { return g.leaves(m) <= now })
}

func (g *memberModel) last() (at window.Instant) {
	for _, m := range g.inside {
		at = max(at, g.leaves(m))
	}
	return at
}

func (g *memberModel) answer(c call) window.Result {
	g.forget(c.now)
	r := window.Result{Allowed: true, Quota: g.l.Quota, Before: int64(len(g.inside))}
	m := g.inside[c.hits.Member]
	switch {
	case c.verb == refund && m != nil:
		if m.uses--; m.uses == 0 {
			delete(g.inside, c.hits.Member)
		}
	case c.verb == take || c.verb == check:
		if m == nil && r.Before >= g.l.Quota {
			r.Allowed, r.RetryAfter = false, window.Never
			for _, m := range g.inside {
				if wait := g.leaves(m).Sub(c.now); r.RetryAfter == window.Never || wait < r.RetryAfter {
					r.RetryAfter = wait
				}
			}
		} else if c.verb == take {
			g.enter(c, m)
		}
	}
	r.Used = int64(len(g.inside))
	r.Remaining = g.l.Quota - r.Used
	r.ResetAfter = max(0, g.last().Sub(c.now))
	return r
}

func (g *memberModel) enter(c call, m *memberUses) {
	if len(g.inside) == 0 {
		g.to = c.now.Add(g.l.Window.Length)
		if g.l.Window.Kind == window.KindCalendar {
			_, g.to = g.l.Window.PeriodBounds(c.now)
		}
	}
	if m == nil {
		m = &memberUses{}
		g.inside[c.hits.Member] = m
	}
	m.newest = c.now
	m.uses++
}

// Distinct windows are equal to a map of members. A member keeps its newest
// date when one of several uses is given back, so that it never leaves early.
func TestDistinctIsExact(t *testing.T) {
	t.Parallel()
	for _, w := range []window.Window{
		window.Sliding(time.Minute), window.Fixed(time.Minute), window.Calendar(window.Minute, nil),
	} {
		for _, quota := range []int64{0, 1, 2, 10, 50} {
			for _, shape := range shapes {
				t.Run(fmt.Sprintf("%v/quota=%d/%s", w.Kind, quota, shape), func(t *testing.T) {
					t.Parallel()
					rnd := rand.New(rand.NewPCG(5, uint64(quota)))
					l := window.MustCompile(window.Limit{Quota: quota, Measure: window.Distinct, Window: w})
					model := &memberModel{l: l, inside: map[uint64]*memberUses{}}
					tr := traffic{shape: shape, verbs: mostlyTakes, length: time.Minute, most: 3}
					var s window.State
					for i, c := range tr.calls(rnd, 3000) {
						c.hits.Member = uint64(rnd.Int64N(quota + 3))
						want := model.answer(c)
						var got window.Result
						if s, got = c.do(l, s); got != want {
							t.Fatalf("call %d, %s of member %d at %d:\ngot  %+v\nwant %+v", i, c.verb, c.hits.Member, c.now, got, want)
						}
					}
				})
			}
		}
	}
}

// Ten thousand members are counted one by one.
func TestDistinctMany(t *testing.T) {
	t.Parallel()
	l := window.MustCompile(window.Limit{Quota: window.MaxEntries, Measure: window.Distinct, Window: window.Sliding(time.Hour)})
	var s window.State
	var r window.Result
	for i := range window.MaxEntries {
		if s, r = l.Take(s, window.Instant(i), window.Hits{N: 1, Member: uint64(i) * 0x9e3779b97f4a7c15}); !r.Allowed {
			t.Fatalf("member %d: got %+v, want allowed", i, r)
		}
	}
	if _, r = l.Take(s, window.MaxEntries, window.Hits{N: 1, Member: 1}); r.Allowed || r.Used != window.MaxEntries {
		t.Errorf("one member more: got %+v, want denied", r)
	}
	if len(s) > l.MaxWords() || len(s) > 2*window.MaxEntries {
		t.Errorf("got %d words, want two a member", len(s))
	}
}
