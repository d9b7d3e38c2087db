package storetest

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// A check answers as a take would, any number of times.
func checkCountsNothing(s *stage) {
	op := hit("s", hourly(2), "k")
	for range 5 {
		r := s.one(store.Check, op)
		if !r.Allowed || r.Used != 0 || r.Remaining != 2 || r.ResetAfter != 0 {
			s.Fatalf("got %+v, want allowed with none used and 2 remaining", r)
		}
	}
	s.one(store.Take, op)
	s.one(store.Take, op)
	if r := s.one(store.Check, op); r.Allowed || r.Used != 2 || r.RetryAfter != time.Hour {
		s.Errorf("full: got %+v, want denied for an hour with 2 used", r)
	}
}

// A record is allowed past the quota, and takes are denied after it.
func recordPastTheQuota(s *stage) {
	for _, l := range []window.Limit{
		{Quota: 3, Window: window.Fixed(time.Hour)},
		{Quota: 3, Window: window.Cells(time.Hour, 6)},
		{Quota: 3, Window: window.Calendar(window.Day, nil)},
	} {
		op := times(5, hit(l.Window.ID(), window.MustCompile(l), "k"))
		if r := s.one(store.Record, op); !r.Allowed || r.Used != 5 || r.Remaining != 0 || r.RetryAfter != 0 {
			s.Errorf("%v: got %+v, want allowed with 5 used and 0 remaining", l.Window, r)
		}
		if r := s.one(store.Take, times(1, op)); r.Allowed || r.Used != 5 {
			s.Errorf("%v: take after it: got %+v, want denied with 5 used", l.Window, r)
		}
	}
}

// A refund gives back what it names, and never more than there is.
func refundGivesBack(s *stage) {
	op := hit("s", hourly(5), "k")
	s.one(store.Take, times(5, op))
	if r := s.one(store.Refund, times(2, op)); !r.Allowed || r.Before != 5 || r.Used != 3 || r.Remaining != 2 {
		s.Errorf("got %+v, want 5 before, 3 used and 2 remaining", r)
	}
	s.used(3, op)
	s.one(store.Refund, times(100, op)) // more than there is
	s.used(0, op)
	if r := s.one(store.Take, times(5, op)); !r.Allowed {
		s.Errorf("take after it: got %+v, want allowed", r)
	}
	if r := s.one(store.Refund, hit("s", hourly(5), "unknown")); !r.Allowed || r.Used != 0 {
		s.Errorf("of an unknown key: got %+v, want allowed with none used", r)
	}
}

// Without hits, or with a negative number, all verbs are allowed and count
// nothing.
func noHitsOnlyLook(s *stage) {
	op := hit("s", hourly(2), "k")
	s.one(store.Take, times(2, op))
	for _, verb := range []store.Verb{store.Check, store.Take, store.Record, store.Refund} {
		for _, n := range []int64{0, -1, -1 << 63} {
			for _, role := range []store.Role{store.Enforce, store.Shadow, store.Always} {
				r := s.one(verb, as(role, times(n, op)))
				if !r.Allowed || r.Used != 2 || r.Before != 2 || r.Remaining != 0 || r.RetryAfter != 0 {
					s.Errorf("%v of %d hits: got %+v, want allowed with 2 used", verb, n, r)
				}
			}
		}
	}
	unknown := times(0, hit("s", hourly(2), "unknown"))
	s.one(store.Record, unknown)
	if r := s.read(unknown); r.Used != 0 || r.ResetAfter != 0 {
		s.Errorf("unknown key: got %+v, want none used", r)
	}
}

// A take of more hits than the quota is denied for good and leaves the state as
// it was.
func neverFits(s *stage) {
	s.each(func(s *stage, l *window.Compiled) {
		if l.Measure == window.Distinct || l.Capacity() == window.Unlimited || l.After.Count > 0 {
			return // always one member; no limit; free up to the count
		}
		op := hit("s", l, "k")
		s.one(store.Take, op)
		before := s.read(op)
		for _, n := range []int64{l.Capacity() + 1, window.MaxHits, 1<<63 - 1} {
			if r := s.one(store.Take, times(n, op)); r.Allowed || r.RetryAfter != window.Never || r.Used != 1 {
				s.Errorf("take of %d: got %+v, want never with 1 used", n, r)
			}
		}
		if after := s.read(op); after.Result != before.Result {
			s.Errorf("got %+v, want it unchanged: %+v", after, before)
		}
	})
}

// A distinct limit counts each member once, and admits the members that it has
// when it is full.
func membersOnce(s *stage) {
	limit := window.MustCompile(window.Limit{Quota: 2, Measure: window.Distinct, Window: window.Sliding(time.Hour)})
	take := func(member string) window.Result {
		op := hit("s", limit, "k")
		op.Member = []byte(member)
		return s.one(store.Take, op)
	}
	for i, step := range []struct {
		member  string
		allowed bool
		used    int64
	}{
		{"ann", true, 1}, {"ann", true, 1}, {"bob", true, 2}, {"eve", false, 2},
		{"ann", true, 2}, {"", false, 2}, {"bob", true, 2},
	} {
		if r := take(step.member); r.Allowed != step.allowed || r.Used != step.used {
			s.Errorf("step %d, %q: got allowed %v with %d used, want %v with %d",
				i, step.member, r.Allowed, r.Used, step.allowed, step.used)
		}
	}
	op := hit("s", limit, "other")
	op.Member = []byte("eve") // known for another key, or not: keys are separate
	if r := s.one(store.Take, op); !r.Allowed || r.Used != 1 {
		s.Errorf("other key: got %+v, want allowed with 1 used", r)
	}
}

// A quota of zero denies for good.
func quotaOfZero(s *stage) {
	op := hit("s", hourly(0), "k")
	if r := s.one(store.Take, op); r.Allowed || r.RetryAfter != window.Never || r.Remaining != 0 {
		s.Errorf("got %+v, want never", r)
	}
}

// A limit without a quota counts everything and denies nothing.
func counters(s *stage) {
	limit := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Cells(time.Hour, 0)})
	op := as(store.Always, times(1000, hit("s", limit, "k")))
	for want := int64(1000); want <= 3000; want += 1000 {
		r := s.one(store.Take, op)
		if !r.Allowed || r.Used != want || r.Quota != window.Unlimited || r.Remaining != window.Unlimited {
			s.Errorf("got %+v, want allowed with %d used of unlimited", r, want)
		}
	}
}

// A member that was recorded past the quota and refunded leaves no place: the member that it pushed
// out is inside. Many members are counted as few are.
func membersPastTheQuota(s *stage) {
	for _, w := range []window.Window{window.Sliding(time.Hour), window.Fixed(time.Hour), window.Calendar(window.Day, nil)} {
		for _, quota := range []int64{1, 3, 70} {
			l := window.MustCompile(window.Limit{Quota: quota, Window: w, Measure: window.Distinct})
			one := func(verb store.Verb, member int64) window.Result {
				op := hit(fmt.Sprint(w.ID(), quota), l, "k")
				op.Member = fmt.Append(nil, member)
				return s.one(verb, op)
			}
			for m := range quota {
				one(store.Take, m)
			}
			one(store.Record, quota)
			if r := one(store.Refund, quota); r.Used != quota {
				s.Errorf("%v, quota %d: got %+v from the refund, want %d used", w.Kind, quota, r, quota)
			}
			if r := one(store.Take, 1000); r.Allowed || r.RetryAfter <= 0 {
				s.Errorf("%v, quota %d: got %+v, want denied: all members of the takes are inside", w.Kind, quota, r)
			}
			for m := range quota {
				one(store.Refund, m) // the first one was pushed out
			}
			admitted := int64(0)
			for m := range quota + 1 {
				if one(store.Take, 2000+m).Allowed {
					admitted++
				}
			}
			if admitted != quota-1 {
				s.Errorf("%v, quota %d: %d were admitted after refunds of the others, want %d", w.Kind, quota, admitted, quota-1)
			}
		}
	}
}
