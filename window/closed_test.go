package window_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// keepsClosed reports whether closed periods of l can be read.
func keepsClosed(l *window.Compiled) bool {
	_, _, ok := l.Exported(nil, 0, true)
	return ok
}

// ledger is the model of exports: what each take of a window of whole minutes has
// counted, and whether it is final.
type ledger struct {
	keep  bool // holds that end by themselves
	final map[window.Instant]int64
	holds map[[12]byte]ledgerHold
}

type ledgerHold struct {
	at, end window.Instant
	n       int64
}

const ledgerPeriod = window.Instant(60_000_000)

// pass makes holds final that have ended.
func (g *ledger) pass(now window.Instant) {
	for id, h := range g.holds {
		if h.end > now {
			continue
		}
		if delete(g.holds, id); g.keep {
			g.final[h.at/ledgerPeriod] += h.n
		}
	}
}

func (g *ledger) do(c holdCall, r window.Result, length time.Duration) {
	switch h, known := g.holds[c.id]; {
	case c.verb == "take" && r.Allowed && r.Held && c.n > 0:
		g.holds[c.id] = ledgerHold{c.now, c.now.Add(length), c.n}
	case c.verb == "take" && r.Allowed && c.n > 0:
		g.final[c.now/ledgerPeriod] += c.n
	case c.verb == "record" && r.Held:
		g.holds[c.id] = ledgerHold{c.now, c.now.Add(length), r.Used - r.Before}
	case c.verb == "record" || c.verb == "refund":
		g.final[c.now/ledgerPeriod] += r.Used - r.Before
	case !r.Held || !known:
	case c.verb == "renew":
		h.end = c.now.Add(length)
		g.holds[c.id] = h
	case c.verb == "settle":
		if delete(g.holds, c.id); c.n < 0 {
			c.n = h.n
		}
		if h.at/ledgerPeriod >= c.now/ledgerPeriod-1 {
			g.final[h.at/ledgerPeriod] += c.n
		}
	case c.verb == "cancel":
		delete(g.holds, c.id)
	}
}

// TestExportedIsExact compares the current and the closed period with a ledger.
func TestExportedIsExact(t *testing.T) {
	t.Parallel()
	reads := 0
	for seed := range 6_000 {
		r := rand.New(rand.NewPCG(uint64(seed), 32))
		l := window.Limit{Quota: 3 + r.Int64N(20), Window: window.Calendar(window.Minute, nil), Export: true, Measure: window.Sum}
		if r.IntN(2) > 0 {
			l.Window = window.Aligned(time.Minute)
		}
		if r.IntN(4) > 0 {
			l.Hold, l.Release = []time.Duration{20 * time.Second, time.Minute, 3 * time.Minute}[r.IntN(3)], r.IntN(2) > 0
		}
		compiled := window.MustCompile(l)
		model := ledger{!l.Release, map[window.Instant]int64{}, map[[12]byte]ledgerHold{}}
		g := newSchedule(r, l)
		var s window.State
		for i := range 30 {
			if g.IntN(4) == 0 {
				g.now = (g.now/ledgerPeriod+1)*ledgerPeriod + window.Instant(g.IntN(3)-1)
			}
			c := g.call()
			if c.verb == "give back" || c.verb == "cancel" && l.Hold == 0 {
				c.verb = "check"
			}
			var got window.Result
			s, got = callHold(compiled, s, c)
			model.pass(c.now)
			model.do(c, got, l.Hold)
			model.pass(c.now)

			period := c.now / ledgerPeriod
			var held, heldBefore int64
			for _, h := range model.holds {
				if held += h.n; h.at/ledgerPeriod == period-1 {
					heldBefore += h.n
				}
			}
			cell, onHold, ok := compiled.Exported(s, c.now, true)
			want := window.Cell{Start: (period - 1) * ledgerPeriod, Length: time.Minute, Hits: model.final[period-1]}
			if cell != want || onHold != heldBefore || !ok {
				t.Fatalf("seed %d, %+v, call %d, %+v, state %v: closed: got %+v with %d held, want %+v with %d", seed, l, i, c, s, cell, onHold, want, heldBefore)
			}
			cell, onHold, _ = compiled.Exported(s, c.now, false)
			if cell.Hits != model.final[period] || onHold != held {
				t.Fatalf("seed %d, %+v, call %d, %+v, state %v: got %d hits, %d held, want %d and %d", seed, l, i, c, s, cell.Hits, onHold, model.final[period], held)
			}
			if want.Hits > 0 {
				reads++
			}
			if at := compiled.Expires(s); len(s) > 0 && at <= c.now {
				s = nil // as a store would
			}
		}
	}
	if reads < 10_000 {
		t.Errorf("got %d closed periods with hits, want more", reads)
	}
}
