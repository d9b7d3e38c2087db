package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// reserving returns op as one that reserves up to n hits for that long under a name.
func reserving(name string, n int64, length time.Duration, op store.Op) store.Op {
	op = named(name, times(n, op))
	op.Hold.End = window.Instant(length.Microseconds())
	return op
}

// A reserve holds at most its part of what is left, and at least what it is worth to it. What was spent counts from the
// settle, and what is not settled from the end.
func reserveCounts(s *stage) {
	op := hit("s", hourly(100), "k")
	a := reserving("a", 80, time.Minute, op)
	a.Hold.Part = 4
	ops := []store.Op{a}
	if r := s.do(store.Reserve, ops...)[0]; !r.Allowed || !r.Held || r.Used != 25 || r.Before != 0 || r.RetryAfter != 0 || ops[0].N != 25 {
		s.Fatalf("got %+v and %d hits, want 25 of 100 held", r, ops[0].N)
	}
	if h := ops[0].Hold; h.At != start || h.Decided != start || h.End != start.Add(time.Minute) {
		s.Errorf("got it from %v to %v, want a minute from now", h.At, h.End)
	}
	if r := s.one(store.Take, times(76, op)); r.Allowed || r.RetryAfter != time.Minute+time.Hour {
		s.Errorf("a take while they are held: got %+v, want denied until they have left", r)
	}
	s.at(time.Second)
	if r := s.one(store.Take, op); !r.Allowed || r.Used != 26 {
		s.Errorf("another take: got %+v, want 26 used", r)
	}
	s.at(10 * time.Second)
	if r := s.one(store.Settle, named("a", times(5, op))); !r.Held || r.Before != 26 || r.Used != 6 {
		s.Errorf("settle: got %+v, want 6 used", r)
	}
	s.at(time.Hour + time.Second)
	s.used(5, op)
	s.at(time.Hour + 10*time.Second - time.Microsecond)
	s.used(5, op)
	s.at(time.Hour + 10*time.Second)
	s.used(0, op)

	least := reserving("b", 80, time.Minute, op)
	least.Hold.Least, least.Hold.Part = 60, 10
	ops = []store.Op{least}
	if r := s.do(store.Reserve, ops...)[0]; !r.Held || r.Used != 60 || ops[0].N != 60 {
		s.Errorf("at least 60: got %+v and %d hits", r, ops[0].N)
	}
	more := reserving("c", 80, time.Minute, op)
	more.Hold.Least = 41
	ops = []store.Op{more}
	if r := s.do(store.Reserve, ops...)[0]; r.Allowed || r.Held || r.Used != 60 || r.RetryAfter != time.Minute+time.Hour || ops[0].N != 41 {
		s.Errorf("at least 41 of 40: got %+v and %d hits, want denied", r, ops[0].N)
	}
	s.at(2*time.Hour + time.Minute + 10*time.Second - time.Microsecond)
	s.used(60, op) // from the end on
	s.at(2*time.Hour + time.Minute + 10*time.Second)
	s.used(0, op)
}

// A settle that comes twice, late, or for what was never reserved changes nothing, and no renewal moves a reservation.
func reserveEndsOnce(s *stage) {
	s.each(func(s *stage, l *window.Compiled) {
		op := hit("s", l, "k")
		for i, name := range []string{"a", "b"} {
			r := s.one(store.Reserve, reserving(name, 2, time.Minute, op))
			if !l.CanReserve() {
				if r.Allowed || r.Held || r.RetryAfter != window.Never || r.Used != 0 {
					s.Errorf("got %+v, want it denied for good", r)
				}
				return
			}
			if !r.Held || r.Used != int64(2+2*i) {
				s.Errorf("%s: got %+v, want 2 more held", name, r)
			}
		}
		if r := s.one(store.Reserve, reserving("a", 1, time.Minute, op)); r.Allowed || r.RetryAfter != time.Minute {
			s.Errorf("the same ID: got %+v, want denied until that has ended", r)
		}
		for i := range 3 {
			if r := s.one(store.Settle, named("a", times(1, op))); r.Held != (i == 0) || r.Used != 3 {
				s.Errorf("settle %d: got %+v, want 3 used", i+1, r)
			}
		}
		if r := s.one(store.Renew, named("b", op)); r.Held {
			s.Errorf("renew: got %+v, want nothing found", r)
		}
		s.one(store.Settle, named("c", times(0, op)))
		s.used(3, op)
		s.at(time.Minute) // where no window but a bucket has lost anything
		used := s.one(store.Check, times(0, op)).Used
		for _, verb := range []store.Verb{store.Settle, store.Cancel} {
			if r := s.one(verb, named("b", times(0, op))); r.Held || r.Used != used {
				s.Errorf("late %v: got %+v, want nothing changed", verb, r)
			}
		}
	})
}

// All ops of a reserve hold as many hits as the tightest has left, or none does. What is denied changes nothing.
func reserveTogether(s *stage) {
	second := hit("second", window.MustCompile(window.Limit{Quota: 10, Window: window.Sliding(time.Second)}), "k")
	hour, none := hit("hour", hourly(100), "k"), hit("none", hourly(0), "k")
	distinct := hit("distinct", window.MustCompile(window.Limit{Quota: 9, Measure: window.Distinct, Window: window.Sliding(time.Hour)}), "k")
	distinct.Member = []byte("m")
	s.one(store.Take, times(4, second))
	ops := []store.Op{reserving("a", 50, time.Minute, hour), as(store.Shadow, reserving("a", 50, time.Minute, second))}
	for i, r := range s.do(store.Reserve, ops...) {
		if !r.Allowed || !r.Held || ops[i].N != 6 || r.Used-r.Before != 6 {
			s.Errorf("op %d: got %+v of %d hits, want 6 held", i, r, ops[i].N)
		}
	}
	for _, other := range []store.Op{none, distinct} {
		ops := []store.Op{reserving("b", 3, time.Minute, hour), reserving("b", 3, time.Minute, other)}
		if r := s.do(store.Reserve, ops...); !r[0].Allowed || r[0].Held || r[0].Used != 6 || r[1].Allowed || r[1].RetryAfter != window.Never {
			s.Errorf("with %s: got %+v, want nothing held", other.Space.ID(), r)
		}
	}
	s.used(6, hour)
	s.used(0, none, distinct)
	if r := s.one(store.Reserve, reserving("c", 0, time.Minute, hour)); !r.Allowed || r.Held || r.Used != 6 {
		s.Errorf("no hits: got %+v, want allowed and nothing held", r)
	}
	for name, op := range map[string]store.Op{"no length": reserving("c", 1, 0, hour), "no ID": reserving("", 1, time.Minute, hour), "no hold": hour} {
		if r := s.one(store.Reserve, op); r.Allowed || r.Held || r.RetryAfter != window.Never {
			s.Errorf("%s: got %+v, want denied", name, r)
		}
	}
}

// A reservation ends with the period in which it was made, and the next one begins with nothing.
func reserveInPeriods(s *stage) {
	for name, w := range map[string]window.Window{
		"fixed": window.Fixed(time.Hour), "calendar": window.Calendar(window.Hour, nil), "aligned": window.Aligned(time.Hour),
	} {
		op := hit(name, window.MustCompile(window.Limit{Quota: 10, Window: w}), "k")
		s.at(0)
		s.one(store.Take, op)
		s.at(50 * time.Minute)
		ops := []store.Op{reserving("a", 9, time.Hour, op)}
		if r := s.do(store.Reserve, ops...)[0]; !r.Held || ops[0].Hold.End != start.Add(time.Hour-time.Microsecond) {
			s.Errorf("%s: got %+v until %v, want it held to the end of the hour", name, r, ops[0].Hold.End.Time())
		}
		s.at(time.Hour - time.Microsecond)
		s.used(10, op)
		if r := s.one(store.Reserve, reserving("b", 1, time.Second, op)); r.Allowed || r.RetryAfter != time.Microsecond {
			s.Errorf("%s: in a full hour: got %+v, want denied until the next", name, r)
		}
		s.at(time.Hour)
		s.used(0, op)
		if r := s.one(store.Reserve, reserving("c", 10, time.Second, op)); !r.Held || r.Used != 10 {
			s.Errorf("%s: in the next hour: got %+v, want all of it", name, r)
		}
		s.at(2*time.Hour - time.Microsecond)
		empty := hit(name, op.Limit, "empty")
		if r := s.one(store.Reserve, reserving("d", 1, time.Second, empty)); name != "fixed" && (r.Allowed || r.RetryAfter != time.Microsecond) {
			s.Errorf("%s: in the last microsecond: got %+v, want denied until the next hour", name, r)
		}
	}
}

// A key has at most so many holds.
func reserveMost(s *stage) {
	const most = 1000
	op := hit("s", hourly(5000), "k")
	for i := range most {
		a := reserving("", 1, time.Minute, op)
		a.Hold.ID = [12]byte{1, 2: byte(i >> 8), 3: byte(i)}
		if r := s.one(store.Reserve, a); !r.Held {
			s.Fatalf("reserve %d: got %+v, want it held", i, r)
		}
	}
	if r := s.one(store.Reserve, reserving("more", 1, time.Minute, op)); r.Allowed || r.RetryAfter != time.Minute {
		s.Errorf("one more: got %+v, want denied until one ends", r)
	}
	if r := s.one(store.Take, op); !r.Allowed || r.Held || r.Used != most+1 {
		s.Errorf("a take: got %+v, want it counted", r)
	}
}

// Callers that reserve, settle and take at the same time never have more than the quota.
func reserveUnderLoad(s *stage) {
	const quota = 1000
	op := hit("s", hourly(quota), "k")
	var spent atomic.Int64
	var callers sync.WaitGroup
	for c := range 16 {
		callers.Go(func() {
			for i := range 20 {
				a := reserving("", 40, time.Minute, op)
				a.Hold.ID = [12]byte{1, 2: byte(c), 3: byte(i)}
				a.Hold.Part = 16
				ops := []store.Op{a}
				if err := store.Do(s.Context(), s.Store, store.Reserve, ops); err != nil {
					s.Error(err)
					return
				}
				if !ops[0].Result.Held {
					continue
				}
				n := ops[0].N / 2
				spent.Add(n)
				if err := store.Do(s.Context(), s.Store, store.Settle, []store.Op{times(n, ops[0])}); err != nil {
					s.Error(err)
				}
			}
		})
	}
	callers.Wait()
	if got := spent.Load(); got > quota {
		s.Errorf("got %d spent, want at most %d", got, quota)
	}
	s.used(spent.Load(), op)
}
