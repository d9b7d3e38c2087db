package window_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// reserving makes up calls under a limit without holds, of which many reserve.
type reserving struct{ *schedule }

func (g reserving) call() holdCall {
	c := g.schedule.call()
	switch {
	case c.verb == "give back": // needs a receipt, which notes when hits were dropped
		c.verb = "cancel"
		return c
	case c.verb == "record": // past the quota, which drops other hits of a state without holds
		c.verb = "take"
		return c
	case c.verb != "take" || g.IntN(3) == 0:
		return c
	}
	length := max(g.l.Window.Length, time.Second)
	c.verb = "reserve"
	c.length = []time.Duration{length / 32, length / 8, length, 3 * length}[g.IntN(4)]
	switch g.IntN(30) {
	case 0:
		c.length = 0
	case 1:
		c.id = [12]byte{}
	case 2:
		c.id = g.takes[g.IntN(len(g.takes))].id
	}
	return c
}

// reserveLimit draws a limit that can reserve, whose windows are exact.
func reserveLimit(r *rand.Rand) window.Limit {
	l := holdLimit(r)
	for l.Window.Kind == window.KindHeld {
		l = holdLimit(r)
	}
	l.Hold, l.Release, l.MaxHolds = 0, false, 0
	return l
}

// TestReservationsAreExact compares random schedules of reservations, takes, settles and refunds with
// the slow model.
func TestReservationsAreExact(t *testing.T) {
	t.Parallel()
	held, settled := 0, 0
	for seed := range 8_000 {
		r := rand.New(rand.NewPCG(uint64(seed), 31))
		l := reserveLimit(r)
		compiled := window.MustCompile(l)
		g := reserving{newSchedule(r, l)}
		tw := newHoldModel(l)
		var s window.State
		for i := range 20 {
			c := g.call()
			before := slices.Clone(s)
			var look window.Result
			if c.verb == "reserve" {
				look = compiled.ReserveCheck(slices.Clone(s), c.now, window.Hits{N: c.n}, window.Hold{ID: c.id, End: window.Instant(c.length.Microseconds())})
			}
			var got window.Result
			s, got = callHold(compiled, s, c)
			if want := tw.do(c); got != want {
				t.Fatalf("seed %d, %+v, call %d, %+v in state %v:\ngot  %+v in state %v\nwant %+v", seed, l, i, c, before, got, s, want)
			}
			switch {
			case c.verb == "reserve" && got.Held:
				held++
				if got.Used > got.Quota || !look.Allowed {
					t.Fatalf("seed %d, %+v, call %d, %+v: got %+v after %+v", seed, l, i, c, got, look)
				}
			case c.verb == "reserve" && (look != got || !slices.Equal(s, before)):
				t.Fatalf("seed %d, %+v, call %d, %+v: got %+v in %v, want %+v in %v", seed, l, i, c, got, s, look, before)
			case c.verb == "settle" && got.Held:
				settled++
			}
			g.last = max(0, got.RetryAfter)
		}
	}
	if held < 20_000 || settled < 3_000 {
		t.Errorf("got %d reservations and %d settles, want more", held, settled)
	}
}

// lease is a reservation of somebody who spends it.
type lease struct {
	id       [12]byte
	end      window.Instant // by the holder's clock, which stops before
	n, spent int64
}

// TestReservationsNeverPassTheQuota spends reservations at random instants up to their end, settles some of
// them, early, late or twice, and counts what was spent in every window. In half of the sliding windows and cells hits
// are recorded, too, past the quota: what is admitted then still fits beside all that the window has.
func TestReservationsNeverPassTheQuota(t *testing.T) {
	t.Parallel()
	for seed := range 1_500 {
		r := rand.New(rand.NewPCG(uint64(seed), 32))
		l := reserveLimit(r)
		if l.Window.Kind == window.KindSliding && r.IntN(2) == 0 {
			l.Quota, l.Window.Precision = 100+r.Int64N(400), 3+r.IntN(10) // in groups
		}
		if l.Window.Kind == window.KindEver {
			continue // which TestReservationsAreExact covers
		}
		spendAll(t, seed, r, window.MustCompile(l))
	}
}

func spendAll(t *testing.T, seed int, r *rand.Rand, l *window.Compiled) {
	now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	length := l.Window.Length
	if length == 0 {
		length = time.Minute
	}
	var s window.State
	var spent, recorded []logged
	var leases, over []lease
	records := (l.Window.Kind == window.KindSliding || l.Window.Kind == window.KindCells) && r.IntN(2) == 0
	spend := func(a *lease, n int64) {
		if n = min(n, a.n-a.spent); n > 0 && now < a.end {
			a.spent += n
			spent = append(spent, logged{now, n})
		}
	}
	fits := func() {
		t.Helper()
		sum := int64(0)
		for _, h := range slices.Concat(spent, recorded) {
			if h.at > now.Add(-length) {
				sum += h.n
			}
		}
		for _, a := range leases {
			if now < a.end {
				sum += a.n - a.spent
			}
		}
		if sum > l.Quota {
			t.Fatalf("seed %d, %+v: %d of %d at %v", seed, *l.Limit, sum, l.Quota, now.Time())
		}
	}
	for i := range 300 {
		now = now.Add(time.Duration(r.Int64N(int64(length)/20 + 1000)))
		if n := 1 + r.Int64N(max(1, l.Quota/4)); records && r.IntN(6) == 0 {
			s, _ = l.Record(s, now, window.Hits{N: n})
			recorded = append(recorded, logged{now, n})
		}
		for i := range leases {
			spend(&leases[i], r.Int64N(leases[i].n+1))
		}
		var res window.Result
		switch r.IntN(6) {
		case 0, 1:
			a := lease{id: [12]byte{1, 2: byte(i >> 8), 3: byte(i)}, n: 1 + r.Int64N(max(1, l.Quota/3))}
			h := window.Hold{ID: a.id, End: window.Instant(1 + r.Int64N(length.Microseconds()/4+1))}
			if s, res, h = l.Reserve(s, now, window.Hits{N: a.n}, h); res.Held {
				a.end = h.End
				if leases = append(leases, a); records {
					fits()
				}
			}
		case 2, 3:
			n := 1 + r.Int64N(max(1, l.Quota/8))
			if s, res = l.Take(s, now, window.Hits{N: n}); res.Allowed {
				if spent = append(spent, logged{now, n}); records {
					fits()
				}
			}
		case 4:
			if len(leases) > 0 {
				i := r.IntN(len(leases))
				s, _ = l.Settle(s, now, leases[i].id, leases[i].spent)
				over = append(over, leases[i])
				leases = slices.Delete(leases, i, i+1)
			}
		case 5: // once more, or of a reservation that has ended
			if len(over) > 0 {
				a := over[r.IntN(len(over))]
				if s, res = l.Settle(s, now, a.id, 0); res.Held {
					t.Fatalf("seed %d, %+v: settled twice", seed, *l.Limit)
				}
			}
		}
	}
	audit(t, seed, l, spent)
}

// audit fails if a window of l has more than the quota, or than twice that for fixed windows, which begin anywhere.
func audit(t *testing.T, seed int, l *window.Compiled, spent []logged) {
	t.Helper()
	most := l.Quota
	switch l.Window.Kind {
	case window.KindFixed:
		most *= 2
	case window.KindCalendar, window.KindAligned, window.KindBucket:
		var s window.State
		for _, h := range spent {
			var r window.Result
			if s, r = l.Take(s, h.at, window.Hits{N: h.n}); !r.Allowed {
				t.Fatalf("seed %d, %+v: %d more at %v: %+v", seed, *l.Limit, h.n, h.at.Time(), r)
			}
		}
		return
	}
	for i, h := range spent {
		sum := int64(0)
		for k := i; k >= 0 && spent[k].at > h.at.Add(-l.Window.Length); k-- {
			sum += spent[k].n
		}
		if sum > most {
			t.Fatalf("seed %d, %+v: %d of %d spent in the window that ends at %v", seed, *l.Limit, sum, most, h.at.Time())
		}
	}
}

// A limit whose takes hold renews no reservation that another limit has left behind: its hits would count from
// the end that it had.
func TestReservationsAreNotRenewed(t *testing.T) {
	t.Parallel()
	plain := window.Limit{Quota: 10, Window: window.Sliding(time.Hour)}
	holds := plain
	holds.Hold = time.Minute
	now, id := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)), [12]byte{1}
	s, r, _ := window.MustCompile(plain).Reserve(nil, now, window.Hits{N: 3}, window.Hold{ID: id, End: 1e6})
	if !r.Held {
		t.Fatalf("got %+v, want it held", r)
	}
	if _, r = window.MustCompile(holds).Renew(s, now, id); r.Held {
		t.Errorf("got %+v, want it not renewed", r)
	}
	if _, r = window.MustCompile(holds).Settle(s, now, id, 1); !r.Held || r.Used != 1 {
		t.Errorf("settle: got %+v, want 1 used", r)
	}
}
