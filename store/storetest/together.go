package storetest

import (
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Tests of takes with several ops. In all of them tight admits one hit, and wide ten.

var (
	tight = hit("tight", hourly(1), "k")
	wide  = hit("wide", hourly(10), "k")
)

// If one op of a take denies, no op is counted, and each op still has its own
// answer.
func oneDenies(s *stage) {
	results := s.do(store.Take, wide, tight)
	if !results[0].Allowed || !results[1].Allowed {
		s.Fatalf("first take: got %+v, want both allowed", results)
	}
	for _, ops := range [][]store.Op{{wide, tight}, {tight, wide}} {
		for i, r := range s.do(store.Take, ops...) {
			// Each op gives its own answer; the one that fitted was not counted.
			if own := ops[i].Space.ID() == "wide"; r.Allowed != own || r.Used != 1 || r.Before != 1 {
				s.Errorf("%s: got %+v, want allowed %v with 1 used", ops[i].Space.ID(), r, own)
			}
			if ops[i].Space.ID() == "tight" && r.RetryAfter != time.Hour {
				s.Errorf("tight: got retry after %v, want 1h", r.RetryAfter)
			}
		}
	}
	s.used(1, wide, tight)
	// The last of three denies, and the first one's key was never used.
	s.do(store.Take, hit("wide", hourly(10), "new"), wide, tight)
	s.used(0, hit("wide", hourly(10), "new"))
}

// A shadow op that denies does not stop the others, and one that admits is
// counted although the others deny.
func shadowNeverDecides(s *stage) {
	shadow := as(store.Shadow, tight)
	s.do(store.Take, wide, shadow)
	results := s.do(store.Take, wide, shadow)
	if !results[0].Allowed || results[0].Used != 2 {
		s.Errorf("enforcing op: got %+v, want allowed with 2 used", results[0])
	}
	if results[1].Allowed || results[1].Used != 1 {
		s.Errorf("shadow op over its quota: got %+v, want denied with 1 used", results[1])
	}
	full := hit("full", hourly(0), "k")
	if r := s.do(store.Take, as(store.Shadow, wide), full)[0]; !r.Allowed || r.Used != 3 {
		s.Errorf("shadow op with one that denies: got %+v, want allowed with 3 used", r)
	}
}

// An always op is counted past its quota, and when the take is denied.
func alwaysIsRecorded(s *stage) {
	full := hit("full", hourly(0), "k")
	limit := window.MustCompile(window.Limit{Quota: 1, Window: window.Fixed(time.Hour)})
	always := as(store.Always, hit("always", limit, "k"))
	for want := int64(1); want <= 3; want++ {
		r := s.do(store.Take, full, always, wide)[1]
		if !r.Allowed || r.Used != want || r.RetryAfter != 0 {
			s.Errorf("got %+v, want allowed with %d used", r, want)
		}
	}
	s.used(0, wide)
}

// An op with CountDenied is counted when it is denied, by itself or by another
// op. Its own answer stays, and the wait is the one after that.
func countDenied(s *stage) {
	limit := window.MustCompile(window.Limit{Quota: 1, Window: window.Fixed(time.Hour)})
	op := hit("counted", limit, "k")
	op.CountDenied = true
	s.one(store.Take, op)
	s.at(time.Minute)
	for want := int64(2); want <= 3; want++ {
		r := s.one(store.Take, op)
		if r.Allowed || r.Before != want-1 || r.Used != want || r.RetryAfter != 59*time.Minute {
			s.Errorf("denied: got %+v, want denied for 59m with %d before and %d used", r, want-1, want)
		}
	}
	// Denied by another op.
	fits := hit("fits", hourly(10), "k")
	fits.CountDenied = true
	full := hit("full", hourly(0), "k")
	for want := int64(1); want <= 2; want++ {
		results := s.do(store.Take, fits, full, wide)
		if r := results[0]; !r.Allowed || r.Used != want || r.Remaining != 10-want {
			s.Errorf("fits: got %+v, want allowed with %d used", r, want)
		}
	}
	s.used(0, wide)
	// In a shadow op.
	shadow := as(store.Shadow, op)
	shadow.Key = []byte("shadow")
	s.one(store.Take, shadow)
	if r := s.one(store.Take, shadow); r.Allowed || r.Used != 2 {
		s.Errorf("shadow: got %+v, want denied with 2 used", r)
	}
	// In a sliding window, denied hits keep the key over its quota.
	s.at(0)
	busy := hit("busy", hourly(1), "k")
	busy.CountDenied = true
	s.one(store.Take, busy)
	s.at(30 * time.Minute)
	if r := s.one(store.Take, busy); r.Allowed || r.RetryAfter != time.Hour {
		s.Errorf("sliding: got %+v, want denied for 1h", r)
	}
}

// Record, refund and check treat all roles in the same way.
func rolesInTakeOnly(s *stage) {
	ops := []store.Op{tight, as(store.Shadow, wide), as(store.Always, hit("always", hourly(10), "k"))}
	s.do(store.Record, ops...)
	s.do(store.Record, ops...)
	s.used(2, wide, ops[2])
	s.do(store.Refund, ops...)
	s.used(1, wide, ops[2])
	for i, r := range s.do(store.Check, ops...) {
		if allowed := i > 0; r.Allowed != allowed {
			s.Errorf("check of op %d: got %+v, want allowed %v", i, r, allowed)
		}
	}
	s.used(1, wide, ops[2])
}

// A look op has its own answer in a take, is not counted and does not decide.
func lookNeverCounts(s *stage) {
	s.do(store.Take, tight)
	for range 3 {
		results := s.do(store.Take, as(store.Look, tight), wide, as(store.Look, times(3, hit("other", hourly(10), "k"))))
		if r := results[0]; r.Allowed || r.Used != 1 || r.RetryAfter != time.Hour {
			s.Errorf("over its quota: got %+v, want denied for 1h", r)
		}
		if r := results[2]; !r.Allowed || r.Used != 0 || r.Remaining != 10 {
			s.Errorf("with room: got %+v, want allowed and none used", r)
		}
	}
	s.used(3, wide)
	// With CountDenied it is counted, and its own answer stays.
	counted := as(store.Look, hit("counted", hourly(2), "k"))
	counted.CountDenied = true
	for i := range int64(4) {
		if r := s.one(store.Take, counted); r.Allowed != (i < 2) || r.Used != min(i+1, 2) {
			s.Errorf("counted, take %d: got %+v, want allowed %v with %d used", i, r, i < 2, min(i+1, 2))
		}
	}
}

// A take up to what fits counts as many hits as remain, and is denied if none does. Other verbs
// ignore it.
func upTo(s *stage) {
	s.each(func(s *stage, l *window.Compiled) {
		if l.Measure == window.Distinct || l.Capacity() == window.Unlimited {
			return
		}
		do := func(verb store.Verb, n int64) (int64, window.Result) {
			ops := []store.Op{times(n, hit("s", l, "k"))}
			ops[0].UpTo = true
			if err := store.Do(s.Context(), s.Store, verb, ops); err != nil {
				s.Fatalf("%v of up to %d: got error %v", verb, n, err)
			}
			return ops[0].N, ops[0].Result
		}
		most := l.Capacity()
		for _, n := range []int64{1, 2, most, window.MaxHits, 1 << 60} {
			_, before := do(store.Check, 0)
			if got, _ := do(store.Check, n); got != n {
				s.Errorf("check of %d: got %d hits, want them as they were", n, got)
			}
			got, r := do(store.Take, n)
			if want := max(1, min(n, before.Remaining)); got != want || r.Allowed != (before.Remaining > 0) {
				s.Errorf("up to %d of %d: got %d and %+v, want %d", n, before.Remaining, got, r, want)
			}
			if !r.Allowed && l.Ban.For == 0 && (r.RetryAfter == window.Never) != (l.Window.Kind == window.KindEver) {
				s.Errorf("up to %d of none: got %+v, want the wait of one hit", n, r)
			}
		}
		for _, n := range []int64{0, -1} {
			if got, r := do(store.Take, n); got != n || !r.Allowed && l.Ban.For == 0 {
				s.Errorf("up to %d: got %d and %+v, want nothing counted", n, got, r)
			}
		}
	})
}

// Ops of a take up to what fits count as many hits as remain under all of those that
// enforce, and other ops none the fewer.
func upToTogether(s *stage) {
	few, many, other := hit("few", hourly(3), "k"), hit("many", hourly(10), "k"), hit("other", hourly(10), "k")
	do := func(ops ...store.Op) []store.Op {
		for i := range ops {
			ops[i].UpTo = ops[i].Space.ID() != "other"
		}
		if err := store.Do(s.Context(), s.Store, store.Take, ops); err != nil {
			s.Fatal(err)
		}
		return ops
	}
	wants := func(ops []store.Op, want ...int64) {
		s.Helper()
		for i := range ops {
			if op := &ops[i]; op.N != want[2*i] || op.Result.Used != want[2*i+1] {
				s.Errorf("op %d: got %d hits and %+v, want %d and %d used", i, op.N, op.Result, want[2*i], want[2*i+1])
			}
		}
	}
	wants(do(times(2, many), times(2, few)), 2, 2, 2, 2)
	wants(do(times(5, many), times(4, few), times(2, other)), 1, 3, 1, 3, 2, 2)
	wants(do(times(5, many), times(4, few), times(2, other)), 1, 3, 1, 3, 2, 2) // few denies
	wants(do(times(5, many), as(store.Shadow, times(4, few))), 5, 8, 4, 3)
	wants(do(times(5, many), as(store.Always, times(1, few))), 2, 10, 1, 3)
}
