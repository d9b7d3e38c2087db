package window_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// callHold makes c on a state under l.
func callHold(l *window.Compiled, s window.State, c holdCall) (window.State, window.Result) {
	h := window.Hits{N: c.n}
	switch c.verb {
	case "take":
		return l.TakeHold(s, c.now, h, c.id)
	case "record":
		return l.Record(s, c.now, h)
	case "refund":
		return l.Refund(s, c.now, h)
	case "settle":
		return l.Settle(s, c.now, c.id, c.n)
	case "cancel":
		return l.Cancel(s, c.now, c.id)
	case "renew":
		return l.Renew(s, c.now, c.id)
	case "give back":
		return l.GiveBack(s, c.now, c.at, h)
	case "reserve":
		begin := window.Instant(7) // the store counts from its own clock
		s, r, _ := l.Reserve(s, c.now, h, window.Hold{ID: c.id, At: begin, End: begin.Add(c.length)})
		return s, r
	}
	return s, l.Check(s, c.now, h)
}

// holdLimit draws a limit that holds, whose windows are exact.
func holdLimit(r *rand.Rand) window.Limit {
	length := []time.Duration{10 * time.Microsecond, time.Second, time.Minute}[r.IntN(3)]
	l := window.Limit{Quota: 1 + r.Int64N(12), Measure: window.Measure(r.IntN(2))}
	if r.IntN(4) == 0 {
		l.Quota = 20 + r.Int64N(80)
	}
	switch r.IntN(8) {
	case 0:
		l.Window = window.Sliding(length)
	case 1:
		l.Window = window.Cells(length, 1+r.IntN(7))
	case 2:
		l.Window = window.Fixed(length)
	case 3:
		l.Window = window.Calendar(window.Minute, nil)
	case 4:
		l.Window = window.Bucket(length, r.Int64N(2)*(1+r.Int64N(30)))
	case 5:
		l.Window = window.Ever()
	case 6:
		length = max(length, time.Second)
		l.Window = window.Aligned(length)
	case 7:
		if l.Window = window.Held(length); l.Measure == window.Sum && r.IntN(2) == 0 {
			l.Quota = 3000 // some places need three words
		}
	}
	l.Export = r.IntN(2) > 0 // which changes no answer
	if l.Window.Kind != window.KindHeld {
		l.Hold = []time.Duration{length / 2, length, 3 * length}[r.IntN(3)]
		l.Release = r.IntN(2) > 0
		if r.IntN(3) == 0 {
			l.MaxHolds = 1 + r.IntN(4)
		}
	}
	return l
}

// schedule makes up calls under a limit.
type schedule struct {
	*rand.Rand
	l     window.Limit
	now   window.Instant
	made  byte
	takes []holdCall // the last ones
	last  time.Duration
}

func newSchedule(r *rand.Rand, l window.Limit) *schedule {
	return &schedule{Rand: r, l: l, now: window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))}
}

// pass lets time pass: often to where something may end.
func (g *schedule) pass() {
	length := g.l.Window.Length
	if length == 0 {
		length = time.Minute
	}
	hold := window.MustCompile(g.l).HoldLength()
	near := window.Instant(g.IntN(3) - 1)
	switch g.IntN(8) {
	case 0, 1:
	case 2:
		g.now = max(g.now, g.now.Add(g.last)+near)
	case 3, 4:
		if len(g.takes) > 0 {
			at := g.takes[g.IntN(len(g.takes))].now
			g.now = max(g.now, at.Add([]time.Duration{length, hold}[g.IntN(2)])+near)
		}
	case 5:
		g.now = g.now.Add(time.Duration(g.Int64N(int64(hold) + 1000)))
	default:
		g.now = g.now.Add(time.Duration(g.Int64N(int64(length)/8 + 1)))
	}
}

func (g *schedule) call() holdCall {
	g.pass()
	c := holdCall{verb: "take", now: g.now, n: 1 + g.Int64N(max(1, g.l.Quota/2))}
	if g.IntN(12) == 0 {
		c.n = g.Int64N(g.l.Quota + 3)
	}
	if k := g.IntN(20); k > 9 && len(g.takes) > 0 {
		old := g.takes[g.IntN(len(g.takes))]
		c.id, c.at = old.id, old.now
		if g.IntN(8) == 0 {
			c.id = [12]byte{11: 1} // which nobody has
		}
		c.verb = []string{"settle", "settle", "cancel", "renew", "record", "refund", "check", "give back", "settle", "cancel"}[k-10]
		if c.verb == "settle" && g.IntN(4) == 0 {
			c.n = []int64{0, -1, 2 * g.l.Quota}[g.IntN(3)]
		}
		return c
	}
	g.made++
	c.id = [12]byte{0: 1, 5: g.made}
	if g.takes = append(g.takes, c); len(g.takes) > 6 {
		g.takes = g.takes[1:]
	}
	return c
}

// TestHoldsAreExact runs random schedules of takes, settles, cancels, renewals
// and expiries, in every kind of window, and compares each answer with that of the
// slow model. WEIR_LONG=1 makes it a million schedules.
func TestHoldsAreExact(t *testing.T) {
	t.Parallel()
	schedules := 8_000
	if os.Getenv("WEIR_LONG") == "1" {
		schedules = 1_000_000
	}
	kinds := map[window.Kind]int{}
	for seed := range schedules {
		r := rand.New(rand.NewPCG(uint64(seed), 12))
		l := holdLimit(r)
		compiled, err := window.Compile(l)
		if err != nil {
			t.Fatalf("%+v: got error %v", l, err)
		}
		kinds[l.Window.Kind]++
		exact(t, seed, compiled, newSchedule(r, l), 20)
	}
	for _, k := range append(slices.Clone(allKinds), window.KindHeld) {
		if kinds[k] < schedules/10 {
			t.Errorf("got %d schedules in %v windows, want about an eighth", kinds[k], k)
		}
	}
}

func exact(t *testing.T, seed int, l *window.Compiled, g *schedule, calls int) {
	tw := newHoldModel(g.l)
	var s window.State
	for i := range calls {
		c := g.call()
		before := slices.Clone(s)
		room := l.RecordWords(s, window.Hits{N: max(c.n, 0)})
		var got window.Result
		s, got = callHold(l, s, c)
		want := tw.do(c)
		if got != want {
			t.Fatalf("seed %d, %+v, call %d, %+v in state %v:\ngot  %+v in state %v\nwant %+v", seed, g.l, i, c, before, got, s, want)
		}
		if c.verb == "take" && got.Held && got.Used > got.Quota {
			t.Fatalf("seed %d, %+v, call %d, %+v: admitted over the quota: %+v", seed, g.l, i, c, got)
		}
		if c.verb == "take" && len(s) > max(room, len(before)) {
			t.Fatalf("seed %d, %+v, call %d, %+v: got %d words, want at most the room, %d", seed, g.l, i, c, len(s), room)
		}
		if !got.Held && (c.verb == "settle" || c.verb == "cancel" || c.verb == "renew") && !slices.Equal(s, before) {
			t.Fatalf("seed %d, %+v, call %d, %+v: found nothing, and changed the state from %v to %v", seed, g.l, i, c, before, s)
		}
		g.last = max(0, got.RetryAfter)
		if r := l.Read(s, c.now); len(r.Holds) == 0 || l.Window.Kind == window.KindHeld {
			k := checker{t: t, Compiled: l, l: *l.Limit, s: s, c: call{now: c.now}}
			k.leaves(c.now)
		}
	}
}

// TestHoldsInGroups compares sliding windows above their precision with the exact
// number: exact ≤ used ≤ exact+g-1. The state stays bounded, and denied takes fit
// exactly after their wait.
func TestHoldsInGroups(t *testing.T) {
	t.Parallel()
	for seed := range 150 {
		r := rand.New(rand.NewPCG(uint64(seed), 13))
		l := window.Limit{Quota: 200 + r.Int64N(2000), Measure: window.Sum, Window: window.Sliding(time.Minute), Hold: time.Minute, MaxHolds: 20}
		l.Window.Precision = []int{3, 10, 40}[r.IntN(3)]
		l.Hold = []time.Duration{5 * time.Second, time.Minute, 3 * time.Minute}[r.IntN(3)]
		l.Release = r.IntN(2) > 0
		compiled := window.MustCompile(l)
		g := newSchedule(r, l)
		// What is settled is at most what was held, so that nothing passes the quota.
		tw := newHoldModel(l)
		amounts := map[[12]byte]int64{}
		var s window.State
		for i := range 600 {
			c := g.call()
			switch c.verb {
			case "record", "refund", "give back":
				continue // a refund of hits that share a date is not exact
			case "take":
				if r.IntN(3) > 0 {
					c.n = 1 + r.Int64N(l.Quota/int64(l.Window.Precision))
				}
				amounts[c.id] = c.n
			case "settle":
				c.n = r.Int64N(amounts[c.id] + 1)
			}
			before := slices.Clone(s)
			var got window.Result
			s, got = callHold(compiled, s, c)
			g.last = max(0, got.RetryAfter)
			if c.verb == "take" && !got.Allowed {
				if got.RetryAfter == window.Never {
					continue
				}
				at := c.now.Add(got.RetryAfter)
				if h := (window.Hits{N: c.n}); !compiled.Check(before, at, h).Allowed || compiled.Check(before, at-1, h).Allowed {
					t.Fatalf("seed %d, call %d, %+v: denied for %v, and not exactly that long", seed, i, c, got.RetryAfter)
				}
				continue
			}
			exactly := tw.do(c)
			if c.verb == "take" && !exactly.Allowed {
				t.Fatalf("seed %d, call %d, %+v: admitted %+v over the exact number: %+v", seed, i, c, got, exactly)
			}
			if got.Held != exactly.Held || got.Used < exactly.Used || got.Used > exactly.Used+compiled.Group()-1 {
				t.Fatalf("seed %d, call %d, %+v of %+v: got %d used and held %v, want from %d to %d, and %v",
					seed, i, c, l, got.Used, got.Held, exactly.Used, exactly.Used+compiled.Group()-1, exactly.Held)
			}
			if most := compiled.MaxWords(); len(s) > most {
				t.Fatalf("seed %d, call %d, %+v: got %d words, want at most %d", seed, i, c, len(s), most)
			}
		}
	}
}

// FuzzHolds runs schedules that the fuzzer makes up. Its bytes take the place of
// random numbers.
func FuzzHolds(f *testing.F) {
	for seed := range 20 {
		f.Add(randomBytes(rand.New(rand.NewPCG(uint64(seed), 14)), 300))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := rand.New(&endless{source: source{data}})
		l := holdLimit(r)
		exact(t, 0, window.MustCompile(l), newSchedule(r, l), 3+len(data)/20)
	})
}

// TestHoldsTheOtherWay checks what holds promise when the clock runs backwards:
// nothing is freed, and a hold that was settled or cancelled stays so.
func TestHoldsTheOtherWay(t *testing.T) {
	t.Parallel()
	for seed := range 2_000 {
		r := rand.New(rand.NewPCG(uint64(seed), 15))
		l := holdLimit(r)
		compiled := window.MustCompile(l)
		g := newSchedule(r, l)
		var s window.State
		for range 20 {
			c := g.call()
			var got window.Result
			if s, got = callHold(compiled, s, c); len(s) == 0 {
				continue
			}
			look := compiled.Check(s, c.now, window.Hits{})
			back := c.now.Add(-time.Duration(r.Int64N(int64(2 * time.Minute))))
			if earlier := compiled.Check(s, back, window.Hits{}); earlier.Remaining > look.Remaining {
				t.Fatalf("seed %d, %+v, after %+v: %v earlier %d remain, want at most %d", seed, l, c, c.now.Sub(back), earlier.Remaining, look.Remaining)
			}
			if c.verb != "settle" && c.verb != "cancel" || !got.Held {
				continue
			}
			// Once more, at the same instant or earlier: nothing is there any more.
			for _, verb := range []string{"settle", "cancel", "renew"} {
				again := holdCall{verb: verb, now: back, n: c.n, id: c.id}
				if next, got := callHold(compiled, slices.Clone(s), again); got.Held || !slices.Equal(next, s) {
					t.Fatalf("seed %d, %+v: %+v after %+v: got %+v and state %v, want nothing held and %v", seed, l, again, c, got, next, s)
				}
			}
		}
	}
}

// TestHoldsLeftBehind plays schedules on limits that change, with holds and
// without: what is used stays within what was taken, whatever is left of it.
func TestHoldsLeftBehind(t *testing.T) {
	t.Parallel()
	for seed := range 5_000 {
		r := rand.New(rand.NewPCG(uint64(seed), 16))
		l := holdLimit(r)
		plain := l
		plain.Hold, plain.Release, plain.MaxHolds = 0, false, 0
		g := newSchedule(r, l)
		var s window.State
		taken := int64(0) // at most what can be used
		for i := range 30 {
			c := g.call()
			now := l
			if l.Window.Kind != window.KindHeld && r.IntN(3) == 0 {
				now = plain
			}
			if r.IntN(4) == 0 {
				now.Quota += r.Int64N(20)
			}
			if r.IntN(4) == 0 {
				now.Ban.For = time.Second
			}
			var got window.Result
			s, got = callHold(window.MustCompile(now), s, c)
			switch {
			case c.verb == "take" && got.Allowed || c.verb == "record":
				taken += c.n
			case c.verb == "settle":
				taken += max(c.n, 0)
			}
			if l.Window.Kind == window.KindBucket { // what is booked is time, and more hits with a larger quota
				taken = max(taken, got.Used)
			}
			if got.Used > taken || got.Remaining < 0 || got.Used < 0 || got.Allowed != (got.RetryAfter == 0) {
				t.Fatalf("seed %d, call %d, %+v of %+v: got %+v, want at most %d used", seed, i, c, now, got, taken)
			}
			compiled := window.MustCompile(now)
			if at := compiled.Expires(s); at < latestInstant && len(s) > 0 && compiled.Check(s, at, window.Hits{}).Used != 0 {
				t.Fatalf("seed %d, call %d, %+v of %+v: got used hits at the expiry of %v", seed, i, c, now, s)
			}
		}
	}
}
