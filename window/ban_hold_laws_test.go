package window_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// banHoldModel is a limit that holds and bans, by the definition: the limit without
// bans, and the ban. A strike drops the hits that are final, and no hold.
type banHoldModel struct {
	*holdModel
	ban     window.Ban
	strikes int64
	end     window.Instant
	length  time.Duration
}

// over reports whether n hits do not fit at now, because of the quota alone for a
// record.
func (tw *banHoldModel) over(c holdCall) bool {
	switch {
	case c.n == 0:
		return false
	case c.verb == "take":
		return c.n > window.MustCompile(tw.l).Capacity() || tw.wait(c.now, c.n) != 0
	case c.verb == "record" && tw.l.Window.Kind != window.KindHeld:
		all := *tw.holdModel
		all.l.MaxHolds = window.MaxEntries
		return !all.fits(c.now, c.n)
	}
	return false
}

func (tw *banHoldModel) strike(now window.Instant) {
	tw.strikes++
	tw.length = tw.ban.For
	for range tw.strikes - 1 {
		tw.length = min(tw.length*time.Duration(max(tw.ban.Factor, 1)), tw.ban.Most)
	}
	tw.end = now.Add(tw.length)
	tw.mature(now)
	if p, ok := tw.final.(*periodOf); ok && len(tw.holds) > 0 {
		p.n = 0
	} else {
		tw.final = newHoldModel(tw.l).final
	}
	tw.seen = now
}

// banned answers n hits while the key is banned.
func (tw *banHoldModel) banned(now window.Instant, n int64, asks bool) window.Result {
	r := window.Result{
		Allowed: !asks, Banned: true, Used: tw.used(now), ResetAfter: tw.end.Sub(now),
		Quota: window.MustCompile(tw.l).Capacity(),
	}
	switch {
	case r.Allowed:
	case n > r.Quota:
		r.RetryAfter = window.Never
	default:
		if r.RetryAfter = tw.wait(now, n); r.RetryAfter != window.Never {
			r.RetryAfter = max(r.RetryAfter, r.ResetAfter)
		}
	}
	return r
}

func (tw *banHoldModel) do(c holdCall) (r window.Result) {
	asks := c.verb == "take" || c.verb == "check"
	ends := c.verb == "settle" || c.verb == "cancel" || c.verb == "renew"
	switch {
	case c.now < tw.end && ends:
		before := tw.used(c.now)
		held := tw.holdModel.do(c).Held
		r = tw.banned(c.now, 0, false)
		if r.Held = held; held {
			r.Before = before
		}
		return r
	case c.now < tw.end:
		return tw.banned(c.now, c.n, asks)
	case tw.over(c):
		before := tw.used(c.now)
		tw.strike(c.now)
		r = tw.banned(c.now, c.n, asks)
		r.Before, r.Struck = before, true
		return r
	case c.verb == "give back" && tw.end > 0 && c.at <= tw.end.Add(-tw.length):
		r = tw.holdModel.do(holdCall{verb: "check", now: c.now})
		return r
	}
	return tw.holdModel.do(c)
}

// TestHoldsUnderBansAreExact compares limits that hold and ban, of every kind, with
// the model. What is held is never more than the quota, also after a ban.
func TestHoldsUnderBansAreExact(t *testing.T) {
	t.Parallel()
	struck, found := 0, 0
	for seed := range 4_000 {
		r := rand.New(rand.NewPCG(uint64(seed), 18))
		l := holdLimit(r)
		tw := &banHoldModel{holdModel: newHoldModel(l)}
		l.Ban = window.Ban{For: l.Window.Length / 3, Factor: r.Int64N(3), Most: 30 * time.Second, Forget: window.MaxLength}
		if l.Ban.For = min(l.Ban.For.Truncate(time.Microsecond), l.Ban.Most); l.Ban.For == 0 {
			l.Ban.For = time.Second
		}
		tw.ban = l.Ban
		compiled, err := window.Compile(l)
		if err != nil {
			t.Fatalf("%+v: got error %v", l, err)
		}
		g := newSchedule(r, l)
		var s window.State
		for i := range 25 {
			c := g.call()
			if r.IntN(6) == 0 {
				g.now = max(g.now, tw.end+window.Instant(r.IntN(3)-1))
				c.now = g.now
			}
			before, room := slices.Clone(s), compiled.RecordWords(s, window.Hits{N: max(c.n, 0)})
			banned := c.now < tw.end
			var got window.Result
			s, got = callHold(compiled, s, c)
			if want := tw.do(c); got != want {
				t.Fatalf("seed %d, %+v, call %d, %+v in state %v:\ngot  %+v in state %v\nwant %+v", seed, l, i, c, before, got, s, want)
			}
			if read := compiled.Read(s, c.now); len(read.Holds) != alive(tw.holds, c.now) {
				t.Fatalf("seed %d, %+v, call %d, %+v: got %d holds, want %d", seed, l, i, c, len(read.Holds), alive(tw.holds, c.now))
			}
			if got.Held && c.verb == "take" && got.Used > got.Quota {
				t.Fatalf("seed %d, %+v, call %d, %+v: admitted over the quota: %+v", seed, l, i, c, got)
			}
			if c.verb == "take" && len(s) > max(room, len(before)) {
				t.Fatalf("seed %d, %+v, call %d, %+v: got %d words, want at most the room, %d", seed, l, i, c, len(s), room)
			}
			if got.Banned && !banned {
				struck++
			}
			if got.Held && banned {
				found++
			}
			g.last = max(0, got.RetryAfter)
		}
	}
	if struck < 2_000 || found < 400 {
		t.Errorf("got %d strikes, and %d holds that were found during a ban, want many", struck, found)
	}
}

// alive returns the number of holds at now.
func alive(holds []heldHits, now window.Instant) (n int) {
	for _, h := range holds {
		if h.end > now {
			n++
		}
	}
	return n
}

// A record that is no strike holds as any other, under limits with bans and without.
func TestRecordNoStrikeHolds(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]window.Limit{
		"held":          {Quota: 1, Window: window.Held(time.Minute)},
		"held and bans": {Quota: 1, Window: window.Held(time.Minute), Ban: window.Ban{For: time.Minute}},
		"hold":          {Quota: 1, Window: window.Sliding(time.Minute), Hold: time.Minute},
		"hold and bans": {Quota: 1, Window: window.Sliding(time.Minute), Hold: time.Minute, Ban: window.Ban{For: time.Minute}},
	} {
		now := window.Instant(1e15)
		hold := window.Hold{ID: [12]byte{1}, At: now, End: now.Add(time.Second)}
		_, r := window.MustCompile(l).RecordNoStrike(nil, now, window.Hits{N: 3}, hold)
		if !r.Held || r.Used != 3 || r.Banned {
			t.Errorf("%s: got %+v, want 3 held and no ban", name, r)
		}
	}
}
