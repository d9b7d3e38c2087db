package storetest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// holding returns a limit of quota hits an hour whose takes hold for ten minutes.
func holding(quota int64) *window.Compiled {
	return window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(time.Hour), Hold: 10 * time.Minute})
}

// inFlight returns a limit of quota hits in flight, each held for a minute.
func inFlight(quota int64) *window.Compiled {
	return window.MustCompile(window.Limit{Quota: quota, Window: window.Held(time.Minute)})
}

// named returns op with a hold of that name.
func named(name string, op store.Op) store.Op {
	op.Hold = new(store.Hold)
	copy(op.Hold.ID[:], name)
	return op
}

func holdCounts(s *stage) {
	op := hit("s", holding(10), "k")
	if r := s.one(store.Take, named("a", times(6, op))); !r.Allowed || !r.Held || r.Used != 6 {
		s.Fatalf("got %+v, want 6 used and held", r)
	}
	take := named("b", times(6, op))
	if r := s.one(store.Take, take); r.Allowed || r.Held || r.RetryAfter != time.Hour {
		s.Errorf("got %+v, want denied for an hour", r)
	}
	if at := start; take.Hold.Decided != at {
		s.Errorf("got it decided at %v, want %v", take.Hold.Decided, at)
	}
	if r := s.read(op); !slices.Equal(r.Holds, []window.Cell{{Start: start, Length: 10 * time.Minute, Hits: 6}}) {
		s.Errorf("got holds %+v, want that of the take", r.Holds)
	}
	s.at(10*time.Minute - time.Microsecond)
	if r := s.one(store.Settle, named("a", times(2, op))); !r.Held || r.Before != 6 || r.Used != 2 {
		s.Errorf("settle: got %+v, want 2 used of 6", r)
	}
	if r := s.read(op); r.Used != 2 || len(r.Holds) != 0 || r.ResetAfter != 50*time.Minute+time.Microsecond {
		s.Errorf("got %+v, want 2 used from the take on, and no hold", r)
	}
}

func endsOnce(s *stage) {
	for name, l := range holdLimits() {
		if l.HoldLength() == 0 {
			continue
		}
		op := hit(name, l, "k")
		s.one(store.Take, named("a", op))
		s.one(store.Take, named("b", op))
		for i, verb := range []store.Verb{store.Settle, store.Settle, store.Cancel, store.Renew} {
			r := s.one(verb, named("a", op))
			if !r.Allowed || r.Held != (i == 0) || r.RetryAfter != 0 {
				s.Errorf("%s, %v, call %d: got %+v, want allowed and held %v", name, verb, i, r, i == 0)
			}
		}
		for _, verb := range []store.Verb{store.Settle, store.Cancel, store.Renew} {
			if r := s.one(verb, named("unknown", op)); !r.Allowed || r.Held || r.Before != r.Used {
				s.Errorf("%s, %v of an unknown hold: got %+v, want nothing held", name, verb, r)
			}
		}
		before := s.read(op).Used
		if r := s.one(store.Cancel, named("b", op)); !r.Held || r.Used != before-1 {
			s.Errorf("%s: cancel: got %+v, want held and %d used", name, r, before-1)
		}
	}
}

func cancelGivesBack(s *stage) {
	hold, plain := hit("hold", holding(10), "k"), times(3, hit("plain", hourly(10), "k"))
	ops := []store.Op{named("a", hold), named("a", plain)}
	s.do(store.Take, ops...)
	at := ops[1].Hold.Decided
	s.at(time.Minute)
	s.do(store.Take, named("b", hold), named("b", plain))
	cancel := func(name string, sure bool, n int64, ops ...store.Op) []window.Result {
		for i := range ops {
			ops[i] = named(name, times(n, ops[i]))
			ops[i].Hold.At, ops[i].Hold.Sure = at, sure
		}
		return s.do(store.Cancel, ops...)
	}
	if r := cancel("unknown", false, 3, plain, hold); r[0].Used != 6 || r[1].Used != 2 {
		s.Errorf("of an unknown take: got %+v, want 6 and 2 used", r)
	}
	if r := cancel("a", false, 0, plain, hold); r[0].Used != 6 || r[1].Used != 1 || !r[1].Held {
		s.Errorf("without hits: got %+v, want 6 and 1 used", r)
	}
	if r := cancel("b", false, 5, plain, hold); r[0].Used != 3 || r[0].Held || r[1].Used != 0 {
		s.Errorf("got %+v, want the 3 hits of that instant given back", r)
	}
	s.at(2 * time.Minute)
	s.one(store.Take, named("c", plain))
	at = start.Add(2 * time.Minute)
	if r := cancel("c", true, 2, plain); r[0].Used != 4 {
		s.Errorf("sure: got %+v, want 4 used", r)
	}
}

func deniedHoldsNothing(s *stage) {
	full, op := hit("full", hourly(0), "k"), hit("s", inFlight(2), "k")
	for range 3 {
		if r := s.do(store.Take, named("a", op), named("a", full)); !r[0].Allowed || r[0].Held || r[0].Used != 0 {
			s.Errorf("got %+v, want nothing held", r[0])
		}
	}
	s.used(0, op)
	if r := s.one(store.Take, op); !r.Allowed || r.Held || r.Used != 0 {
		s.Errorf("without a name: got %+v, want nothing held", r)
	}
}

func rolesHold(s *stage) {
	op, full := hit("s", holding(1), "k"), hit("full", hourly(0), "k")
	if r := s.do(store.Take, named("a", as(store.Shadow, op)), named("a", full)); !r[0].Held {
		s.Errorf("shadow: got %+v, want held", r[0])
	}
	if r := s.one(store.Take, named("b", as(store.Always, op))); !r.Held || r.Used != 2 {
		s.Errorf("always: got %+v, want held past the quota", r)
	}
	if r := s.one(store.Take, named("c", as(store.Look, op))); r.Held || r.Used != 2 {
		s.Errorf("look: got %+v, want nothing held", r)
	}
	for _, name := range []string{"a", "b"} {
		if r := s.one(store.Cancel, named(name, op)); !r.Held {
			s.Errorf("cancel %s: got %+v, want it held", name, r)
		}
	}
	s.used(0, op)
}

func renewals(s *stage) {
	op := hit("s", inFlight(1), "k")
	s.one(store.Take, named("a", op))
	for i := 1; i < 4; i++ {
		s.at(time.Duration(i)*time.Minute - time.Duration(i)*time.Microsecond)
		if r := s.one(store.Renew, named("a", op)); !r.Held || r.ResetAfter != time.Minute {
			s.Errorf("renewal %d: got %+v, want another minute", i, r)
		}
	}
	s.at(4 * time.Minute)
	if r := s.one(store.Renew, named("a", op)); r.Held || r.Used != 0 {
		s.Errorf("too late: got %+v, want nothing held", r)
	}
	if r := s.one(store.Take, named("b", op)); !r.Held {
		s.Errorf("got %+v, want the place to be free", r)
	}
}

// The holds of another store can be recorded afterwards.
func recordedHolds(s *stage) {
	op := named("a", times(3, hit("s", holding(2), "k")))
	s.at(time.Minute)
	op.Hold.At, op.Hold.End = start, start.Add(2*time.Minute)
	if r := s.one(store.Record, op); !r.Held || r.Used != 3 {
		s.Errorf("got %+v, want 3 held", r)
	}
	again := op // with another end
	again.Hold = &store.Hold{Hold: window.Hold{ID: op.Hold.ID, At: start, End: start.Add(time.Hour)}}
	if r := s.one(store.Record, again); !r.Held || r.Used != 3 {
		s.Errorf("again: got %+v, want the 3 held as they are", r)
	}
	if r := s.read(op); len(r.Holds) != 1 || r.Holds[0].Length != 2*time.Minute {
		s.Errorf("again: got holds %+v, want the first one", r.Holds)
	}
	s.at(2*time.Minute - time.Microsecond)
	if r := s.one(store.Settle, times(1, op)); !r.Held || r.Used != 1 || r.ResetAfter != 58*time.Minute+time.Microsecond {
		s.Errorf("settle: got %+v, want 1 used since the take", r)
	}
	place := named("c", hit("flight", inFlight(1), "k"))
	place.Hold.At, place.Hold.End, place.Hold.NoStrike = start, start.Add(3*time.Minute), true
	if r := s.one(store.Record, place); !r.Held || r.Used != 1 {
		s.Errorf("a place: got %+v, want 1 held", r)
	}
	if r := s.one(store.Record, place); !r.Held || r.Used != 1 {
		s.Errorf("a place again: got %+v, want 1 held", r)
	}
	over := named("b", times(3, hit("over", holding(2), "k")))
	over.Hold.At, over.Hold.End = start, start.Add(time.Minute)
	if r := s.one(store.Record, over); r.Held || r.Used != 3 {
		s.Errorf("of a hold that is over: got %+v, want 3 used", r)
	}
}

// banning returns a limit of quota hits an hour that bans for ten minutes.
func banning(quota int64) *window.Compiled {
	return window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(time.Hour), Ban: window.Ban{For: 10 * time.Minute}})
}

func strikes(s *stage) {
	op, full := hit("s", banning(1), "k"), hit("full", hourly(0), "k")
	if r := s.do(store.Take, op, full); r[0].Banned {
		s.Errorf("denied by another op: got %+v, want no strike", r[0])
	}
	s.one(store.Take, op)
	take := named("", op)
	if r := s.do(store.Take, take, full); r[0].Allowed || !r[0].Banned || r[0].RetryAfter != 10*time.Minute || r[0].Used != 0 || r[0].Remaining != 0 {
		s.Errorf("got %+v, want banned for ten minutes", r[0])
	}
	if take.Hold.Decided != start {
		s.Errorf("got it decided at %v, want %v", take.Hold.Decided, start)
	}
	s.at(time.Minute)
	for _, verb := range []store.Verb{store.Check, store.Take} {
		if r := s.one(verb, op); r.Allowed || !r.Banned || r.RetryAfter != 9*time.Minute {
			s.Errorf("%v: got %+v, want banned for nine minutes", verb, r)
		}
		if r := s.one(verb, times(0, op)); r.Allowed || !r.Banned || r.RetryAfter != 9*time.Minute {
			s.Errorf("%v of 0 hits: got %+v, want banned for nine minutes", verb, r)
		}
	}
	other := hit("other", hourly(1), "k")
	if r := s.do(store.Take, times(0, op), other); r[0].Allowed || !r[1].Allowed {
		s.Errorf("0 hits and another op: got %+v, want the first denied", r)
	}
	s.used(0, other)
	for _, verb := range []store.Verb{store.Record, store.Refund} {
		if r := s.one(verb, times(0, op)); !r.Allowed || !r.Banned || r.RetryAfter != 0 {
			s.Errorf("%v of 0 hits: got %+v, want it allowed and banned", verb, r)
		}
	}
	if r := s.read(op); !r.Allowed || r.BannedUntil != start.Add(10*time.Minute) || r.Strikes != 1 {
		s.Errorf("got %+v, want banned until ten minutes from the start, and a strike", r)
	}
	s.at(10 * time.Minute)
	if r := s.one(store.Record, times(1, op)); r.Banned || r.Used != 1 {
		s.Errorf("after it: got %+v, want 1 used", r)
	}
	if r := s.one(store.Record, op); !r.Banned || !r.Allowed {
		s.Errorf("a record past the quota: got %+v, want banned", r)
	}
	look := hit("look", banning(0), "k")
	if r := s.one(store.Take, as(store.Look, look)); !r.Banned {
		s.Errorf("look: got %+v, want banned", r)
	}
}

func shadowBan(s *stage) {
	shadow := as(store.Shadow, hit("s", banning(1), "k"))
	for i := range 3 {
		r := s.do(store.Take, shadow, hit("other", hourly(3), "k"))
		if r[0].Banned != (i > 0) || !r[1].Allowed {
			s.Errorf("take %d: got %+v, want banned %v, and the other op allowed", i, r, i > 0)
		}
	}
	s.used(3, hit("other", hourly(3), "k"))
}

func countDeniedWhileBanned(s *stage) {
	op := hit("s", banning(1), "k")
	op.CountDenied = true
	s.one(store.Take, op)
	s.one(store.Take, op)
	s.at(time.Minute)
	if r := s.one(store.Take, op); r.Allowed || !r.Banned || r.RetryAfter != 10*time.Minute {
		s.Errorf("got %+v, want banned for ten minutes from now on", r)
	}
	if r := s.one(store.Record, op); r.ResetAfter != 10*time.Minute {
		s.Errorf("record: got %+v, want it to leave the end", r)
	}
	if r := s.read(op); r.Strikes != 1 {
		s.Errorf("got %d strikes, want 1", r.Strikes)
	}
}

// holdsOutliveBans checks that a ban of a key does not end its holds, even if one take asks for more than the
// quota.
func holdsOutliveBans(s *stage) {
	limit := window.MustCompile(window.Limit{Quota: 2, Window: window.Held(time.Hour), Ban: window.Ban{For: time.Minute}})
	op := hit("s", limit, "k")
	s.one(store.Take, named("a", op))
	s.one(store.Take, named("b", op))
	if r := s.one(store.Take, named("c", times(3, op))); !r.Banned || r.RetryAfter != window.Never || r.Used != 2 {
		s.Errorf("more than ever fits: got %+v, want banned, with 2 used", r)
	}
	held := window.Cell{Start: start, Length: time.Hour, Hits: 1}
	if r := s.read(op); !slices.Equal(r.Holds, []window.Cell{held, held}) || r.BannedUntil != start.Add(time.Minute) {
		s.Errorf("got %+v, want 2 holds, and banned for a minute", r)
	}
	s.at(30 * time.Second)
	if r := s.one(store.Check, op); !r.Banned || r.ResetAfter != 30*time.Second || r.RetryAfter != time.Hour-30*time.Second {
		s.Errorf("check: got %+v, want a wait for the first place", r)
	}
	if r := s.one(store.Renew, named("a", op)); !r.Held || !r.Banned {
		s.Errorf("renew: got %+v, want it held and banned", r)
	}
	if r := s.one(store.Settle, named("b", op)); !r.Held || r.Used != 1 || r.Before != 2 {
		s.Errorf("settle: got %+v, want the other place to stay", r)
	}
	s.at(time.Minute)
	if r := s.one(store.Take, named("d", op)); !r.Held || r.Used != 2 {
		s.Errorf("after the ban: got %+v, want the second place", r)
	}
	if r := s.one(store.Take, named("e", op)); r.Allowed {
		s.Errorf("after the ban: got %+v, want no third place", r)
	}
}

// lostOnReload checks a reload that removes hold or ban from a rule: live holds expire, and can be settled, and
// a ban ends at once.
func lostOnReload(s *stage) {
	plain := hourly(10)
	op := hit("hold", holding(10), "k")
	s.one(store.Take, named("a", times(4, op)))
	s.one(store.Take, named("b", times(3, op)))
	op.Limit = plain
	if r := s.one(store.Take, named("c", op)); !r.Allowed || r.Held || r.Used != 8 {
		s.Errorf("without hold: got %+v, want 8 used and nothing held", r)
	}
	if r := s.one(store.Renew, named("b", op)); r.Held {
		s.Errorf("without hold: renew: got %+v, want no hold", r)
	}
	if r := s.one(store.Settle, named("b", times(1, op))); !r.Held || r.Used != 6 {
		s.Errorf("without hold: settle: got %+v, want 6 used", r)
	}
	s.at(10 * time.Minute)
	if r := s.read(op); len(r.Holds) != 0 || r.Used != 6 {
		s.Errorf("without hold: got %+v, want the hold to have run out", r)
	}
	s.at(time.Hour)
	if r := s.one(store.Check, op); r.Used != 0 {
		s.Errorf("without hold: got %+v, want nothing used an hour after the takes", r)
	}

	op = hit("ban", banning(1), "k")
	s.one(store.Take, op)
	s.one(store.Take, op)
	op.Limit = hourly(1)
	if r := s.one(store.Take, op); !r.Allowed || r.Banned || r.Used != 1 {
		s.Errorf("without ban: got %+v, want it admitted", r)
	}
	op.Limit = banning(1)
	if r := s.read(op); r.BannedUntil != 0 || r.Strikes != 0 {
		s.Errorf("with a ban again: got %+v, want neither ban nor strikes: a take has dropped them", r)
	}
}

// holdsUnderLoweredQuota checks that a hold that ends under a lowered quota leaves what was counted under the larger one.
func holdsUnderLoweredQuota(s *stage) {
	for i, ends := range []func(op store.Op){
		func(op store.Op) { s.one(store.Settle, named("a", times(5, op))) },
		func(op store.Op) { s.at(20 * time.Minute); s.one(store.Refund, times(1, op)) },
	} {
		large, small := hit("s", holding(100), fmt.Sprint(i)), hit("s", holding(10), fmt.Sprint(i))
		s.one(store.Take, named("a", times(5, large)))
		for n := range 9 {
			s.at(time.Duration(9*i+n+1) * time.Second)
			s.one(store.Take, times(10, large))
		}
		ends(small)
		if r := s.read(large); r.Used < 94 {
			s.Errorf("%d: got %d used, want at least 94", i, r.Used)
		}
	}
}

// recordsUnderLoweredQuota checks that records, denied takes that count, and a settle at more than was held leave what was
// counted under a larger quota, under which another process may go on counting.
func recordsUnderLoweredQuota(s *stage) {
	second := 0
	for name, of := range map[string]func(quota int64) *window.Compiled{
		"hourly": hourly, "holding": holding,
		"precise": func(quota int64) *window.Compiled {
			return window.MustCompile(window.Limit{Quota: quota, Window: window.Window{Kind: window.KindSliding, Length: time.Hour, Precision: 200}})
		},
		"distinct": func(quota int64) *window.Compiled {
			return window.MustCompile(window.Limit{Quota: quota, Measure: window.Distinct, Window: window.Sliding(time.Hour)})
		},
		"distinct, fixed": func(quota int64) *window.Compiled {
			return window.MustCompile(window.Limit{Quota: quota, Measure: window.Distinct, Window: window.Fixed(time.Hour)})
		},
	} {
		for _, quotas := range [][2]int64{{80, 3}, {150, 149}, {301, 20}, {300, 0}} {
			large, small := hit(name, of(quotas[0]), fmt.Sprint(quotas)), hit(name, of(quotas[1]), fmt.Sprint(quotas))
			next := func() []byte {
				second++
				s.at(time.Duration(second) * 100 * time.Millisecond)
				return fmt.Append(nil, second)
			}
			admitted := int64(0)
			for ended := false; !ended; admitted++ {
				large.Member = next()
				ended = !s.one(store.Take, named(fmt.Sprint(second), large)).Allowed
			}
			if admitted--; admitted != quotas[0] {
				s.Errorf("%s: got %d admitted, want %d", name, admitted, quotas[0])
			}
			settle := named(fmt.Sprint(second-1), times(9, small))
			for i := range 40 {
				small.Member, small.CountDenied = next(), i%2 == 0 && large.Limit.Measure != window.Distinct
				switch {
				case i == 20:
					s.one(store.Settle, settle)
				case small.CountDenied:
					s.one(store.Take, small)
				default:
					s.one(store.Record, times(1+int64(i/10), small))
				}
				large.Member = next()
				if r := s.one(store.Take, large); r.Allowed {
					s.Fatalf("%s, quotas %v: a take was admitted after %d hits and record %d: %+v", name, quotas, admitted, i, r)
				}
			}
		}
	}
}

func refundAll(s *stage) {
	for name, op := range map[string]store.Op{
		"ban": hit("ban", banning(1), "k"), "plain": hit("plain", hourly(1), "k"),
	} {
		s.one(store.Take, op)
		s.one(store.Take, op)
		if r := s.one(store.Refund, times(window.All, op)); r.Banned || r.Used != 0 || r.Remaining != 1 || r.ResetAfter != 0 {
			s.Errorf("%s: got %+v, want an unused key", name, r)
		}
		if r := s.read(op); r.Strikes != 0 {
			s.Errorf("%s: got %d strikes, want none", name, r.Strikes)
		}
	}
	hold := hit("hold", holding(5), "k")
	s.one(store.Take, hold)
	s.one(store.Take, named("a", hold))
	if r := s.one(store.Refund, times(window.All, hold)); r.Used != 1 {
		s.Errorf("got %+v, want the hold to stay", r)
	}
}

func forgetLifts(s *stage) {
	op := hit("s", banning(1), "k")
	s.one(store.Take, op)
	s.one(store.Take, op)
	if err := s.Store.Forget(s.Context(), &op); err != nil {
		s.Fatal(err)
	}
	if r := s.one(store.Take, op); !r.Allowed || r.Banned {
		s.Errorf("got %+v, want allowed", r)
	}
}

// Never more than the limit are in flight: callers raise a count after their take,
// and lower it before they settle.
func inFlightUnderLoad(s *stage) {
	const most = 5
	op := hit("s", inFlight(most), "k")
	var flying, highest, took atomic.Int64
	concurrently(func(i int) {
		for n := range 200 {
			ops := []store.Op{named(fmt.Sprint(i, ".", n), op)}
			if err := store.Do(s.Context(), s.Store, store.Take, ops); err != nil {
				s.Errorf("got error %v", err)
				return
			}
			if !ops[0].Result.Held {
				continue
			}
			took.Add(1)
			now := flying.Add(1)
			for high := highest.Load(); now > high && !highest.CompareAndSwap(high, now); high = highest.Load() {
			}
			flying.Add(-1)
			verb := []store.Verb{store.Settle, store.Cancel}[n%2]
			if err := store.Do(s.Context(), s.Store, verb, ops); err != nil || !ops[0].Result.Held {
				s.Errorf("%v: got %+v and error %v, want held", verb, ops[0].Result, err)
			}
		}
	})
	if got := highest.Load(); got > most || took.Load() == 0 {
		s.Errorf("got %d in flight of %d takes, want at most %d", got, took.Load(), most)
	}
	s.used(0, op)
}
