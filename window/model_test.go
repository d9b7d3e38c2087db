package window_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// A model counts hits by the definition: it remembers every hit. The results of a
// limiter follow from the hits inside and the instants at which they leave.
type model interface {
	// instant returns the instant that now counts as.
	instant(now window.Instant) window.Instant
	// used returns the number of hits inside at now.
	used(now window.Instant) int64
	// changes returns the instants after now at which used falls, in order.
	changes(now window.Instant) []window.Instant
	// add counts n hits at now; refund takes the newest n back.
	add(now window.Instant, n int64)
	refund(now window.Instant, n int64)
}

// verb is one of the four verbs, and call is one use of it.
type verb string

const (
	take   verb = "take"
	check  verb = "check"
	record verb = "record"
	refund verb = "refund"
)

type call struct {
	verb verb
	now  window.Instant
	hits window.Hits
}

func (c call) do(l *window.Compiled, s window.State) (window.State, window.Result) {
	switch c.verb {
	case take:
		return l.Take(s, c.now, c.hits)
	case record:
		return l.Record(s, c.now, c.hits)
	case refund:
		return l.Refund(s, c.now, c.hits)
	}
	return s, l.Check(s, c.now, c.hits)
}

// answer returns the result of c under a quota, by a model.
func answer(w model, quota int64, c call) window.Result {
	now, n := w.instant(c.now), c.hits.N
	r := window.Result{Allowed: true, Quota: quota, Before: w.used(now)}
	fits := func(at window.Instant) bool {
		return n == 0 || quota == window.Unlimited || w.used(at)+n <= quota
	}
	switch c.verb {
	case take, check:
		if r.Allowed = fits(now); !r.Allowed {
			r.RetryAfter = window.Never
			for _, at := range w.changes(now) {
				if fits(at) {
					r.RetryAfter = at.Sub(now)
					break
				}
			}
		} else if c.verb == take && n > 0 {
			w.add(now, n)
		}
	case record:
		if n > 0 {
			w.add(now, n)
		}
	case refund:
		w.refund(now, n)
	}
	r.Used = w.used(now)
	if r.Remaining = window.Unlimited; quota != window.Unlimited {
		r.Remaining = max(0, quota-r.Used)
	}
	if at := w.changes(now); r.Used > 0 && len(at) > 0 {
		r.ResetAfter = at[len(at)-1].Sub(now)
	}
	return r
}

// admitted is a list of hits that were admitted.
type admitted []logged

// most returns the most hits in any window (t-length, t]. Hits are in order.
func (a admitted) most(length time.Duration) int64 {
	var most, inside int64
	oldest := 0
	for _, hit := range a {
		inside += hit.n
		for a[oldest].at <= hit.at.Add(-length) {
			inside -= a[oldest].n
			oldest++
		}
		most = max(most, inside)
	}
	return most
}

// traffic makes calls of one shape: steady, in bursts, or at the edges, within a
// microsecond of the window's length after an earlier call.
type traffic struct {
	shape  string
	verbs  []verb
	length time.Duration
	most   int64 // hits per call
	back   bool  // time sometimes runs backwards
}

var shapes = []string{"steady", "bursts", "edges"}

func (tr traffic) calls(rnd *rand.Rand, n int) []call {
	now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)) + window.Instant(rnd.Int64N(1e9))
	seen := []window.Instant{now}
	var calls []call
	for range n {
		length := tr.length.Microseconds()
		switch {
		case tr.back && rnd.IntN(20) == 0:
			now -= window.Instant(rnd.Int64N(length + 1))
		case tr.shape == "steady":
			now += window.Instant(rnd.Int64N(length/20 + 2))
		case tr.shape == "bursts":
			if rnd.IntN(15) == 0 {
				now += window.Instant(rnd.Int64N(2*length + 1))
			}
		case rnd.IntN(2) == 0: // edges
			aim := seen[rnd.IntN(len(seen))].Add(tr.length) + window.Instant(rnd.IntN(3)-1)
			now = max(now, aim)
		}
		if seen = append(seen, now); len(seen) > 5 {
			seen = seen[1:]
		}
		hits := 1 + rnd.Int64N(tr.most)
		if rnd.IntN(3) > 0 {
			hits = 1 + rnd.Int64N(min(tr.most, 3))
		}
		calls = append(calls, call{verb: tr.verbs[rnd.IntN(len(tr.verbs))], now: now, hits: window.Hits{N: hits}})
	}
	return calls
}

// mostlyTakes is a mix of verbs in which nothing passes the quota.
var mostlyTakes = []verb{take, take, take, take, take, take, check, refund}

// agree runs calls on l and on its model and fails where the results differ.
func agree(t *testing.T, l *window.Compiled, w model, calls []call) {
	t.Helper()
	var s window.State
	for i, c := range calls {
		want := answer(w, l.Quota, c)
		var got window.Result
		if s, got = c.do(l, s); got != want {
			t.Fatalf("%v quota %d, call %d, %s of %d at %d:\ngot  %+v\nwant %+v",
				l.Window.String(), l.Quota, i, c.verb, c.hits.N, c.now, got, want)
		}
	}
}
