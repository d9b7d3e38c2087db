package window_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// banModel is a limit that bans, by the definition: the limit without bans, and
// what there was of bans.
type banModel struct {
	*window.Compiled
	ban     window.Ban
	s       window.State
	strikes int64 // at the end of the last ban
	end     window.Instant
	length  time.Duration
}

// left returns how many strikes are not forgotten.
func (tw *banModel) left(now window.Instant) int64 {
	n := tw.strikes
	for at := tw.end.Add(tw.ban.Forget); at <= now && n > 0; at = at.Add(tw.ban.Forget) {
		n--
	}
	return n
}

func (tw *banModel) strike(now window.Instant) {
	tw.strikes = tw.left(now) + 1
	tw.length = tw.ban.For
	for range tw.strikes - 1 {
		tw.length = min(tw.length*time.Duration(max(tw.ban.Factor, 1)), tw.ban.Most)
	}
	tw.end, tw.s = now.Add(tw.length), nil
}

// banned answers n hits while the key is banned.
func (tw *banModel) banned(now window.Instant, n int64, asks bool) window.Result {
	r := window.Result{Allowed: !asks, Banned: true, Quota: tw.Capacity(), ResetAfter: tw.end.Sub(now)}
	if !r.Allowed {
		r.RetryAfter = r.ResetAfter
		if tw.Check(nil, now, window.Hits{N: n, Member: 1}).RetryAfter == window.Never {
			r.RetryAfter = window.Never
		}
	}
	return r
}

func (tw *banModel) do(verb string, now window.Instant, h window.Hits) (r window.Result) {
	asks := verb == "take" || verb == "check"
	if verb == "refund" && h.N == window.All {
		before := int64(0)
		if now >= tw.end {
			before = tw.Check(tw.s, now, window.Hits{}).Used
		}
		tw.strikes, tw.end, tw.s = 0, 0, nil
		r = tw.Check(nil, now, window.Hits{})
		r.Before = before
		return r
	}
	if now < tw.end {
		if verb == "denied" && h.N > 0 {
			tw.end = now.Add(tw.length)
		}
		return tw.banned(now, h.N, asks)
	}
	before := tw.Check(tw.s, now, window.Hits{}).Used
	over := h.N > 0 && !tw.Check(tw.s, now, h).Allowed
	switch {
	case over && (verb == "take" || verb == "record"):
		tw.strike(now)
		r = tw.banned(now, h.N, verb == "take")
		r.Before, r.Struck = before, true
		return r
	case verb == "take":
		tw.s, r = tw.Take(tw.s, now, h)
	case verb == "record" || verb == "denied":
		tw.s, r = tw.Record(tw.s, now, h)
	case verb == "refund":
		tw.s, r = tw.Refund(tw.s, now, h)
	default:
		r = tw.Check(tw.s, now, h)
	}
	return r
}

// TestBansAreExact compares limits that ban, of every kind, with the model.
func TestBansAreExact(t *testing.T) {
	t.Parallel()
	bans := 0
	for seed := range 6_000 {
		r := rand.New(rand.NewPCG(uint64(seed), 17))
		g := &source{randomBytes(r, 60)}
		l := g.limit()
		l.Quota = min(l.Quota, 60)
		if l.Quota == window.Unlimited || l.Validate() != nil {
			continue
		}
		ban := window.Ban{For: time.Duration(1+r.IntN(9)) * time.Second, Factor: r.Int64N(4), Most: 20 * time.Second, Forget: time.Duration(1+r.IntN(90)) * time.Second}
		tw := &banModel{Compiled: window.MustCompile(l), ban: ban}
		l.Ban = ban
		compiled := window.MustCompile(l)
		var s window.State
		now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
		for i := range 40 {
			switch r.IntN(5) {
			case 0:
				now = max(now, tw.end+window.Instant(r.IntN(3)-1))
			case 1:
				now = max(now, tw.end.Add(ban.Forget*time.Duration(r.IntN(4)))+window.Instant(r.IntN(3)-1))
			case 2:
				now = now.Add(time.Duration(r.Int64N(int64(10 * time.Second))))
			}
			verb := []string{"take", "take", "take", "take", "check", "record", "refund", "denied"}[r.IntN(8)]
			h := window.Hits{N: r.Int64N(4), Member: uint64(r.IntN(8))}
			switch r.IntN(6) {
			case 0:
				h.N = l.Quota + r.Int64N(3) - 1
			case 1:
				if verb == "refund" && l.Measure != window.Distinct {
					h.N = window.All
				}
			}
			h.N = max(h.N, 0)
			before := slices.Clone(s)
			var got window.Result
			switch verb {
			case "take":
				s, got = compiled.Take(s, now, h)
			case "check":
				got = compiled.Check(s, now, h)
			case "record":
				s, got = compiled.Record(s, now, h)
			case "refund":
				s, got = compiled.Refund(s, now, h)
			default:
				s, got = compiled.RecordDenied(s, now, h)
			}
			if want := tw.do(verb, now, h); got != want {
				t.Fatalf("seed %d, %+v, call %d, %s of %+v at %d in state %v:\ngot  %+v in state %v\nwant %+v", seed, l, i, verb, h, now, before, got, s, want)
			}
			read := compiled.Read(s, now)
			if want := tw.left(now); read.Strikes != want || (read.BannedUntil > 0) != (now < tw.end) {
				t.Fatalf("seed %d, call %d, %s: got %+v, want %d strikes", seed, i, verb, read, want)
			}
			if got.Banned {
				bans++
			}
		}
	}
	if bans < 10_000 {
		t.Errorf("got %d answers about bans, want many", bans)
	}
}
