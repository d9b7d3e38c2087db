package storetest

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// limits returns all kinds of windows with all measures, by name.
func limits() map[string]*window.Compiled {
	berlin := time.FixedZone("Berlin in winter", 3600)
	all := map[string]window.Limit{
		"after": {Quota: 1, Window: window.Sliding(2 * time.Minute),
			After: window.After{Count: 3, Window: window.Calendar(window.Day, berlin)}},
		"counter":      {Quota: window.Unlimited, Window: window.Cells(time.Hour, 0)},
		"few cells":    {Quota: 7, Window: window.Cells(time.Hour, 7)},
		"odd bucket":   {Quota: 7, Window: window.Bucket(100*time.Second, 0)},
		"burst bucket": {Quota: 10, Window: window.Bucket(time.Hour, 25)},
		"groups":       {Quota: 1000, Window: window.Sliding(time.Hour)},
		"month":        {Quota: 9, Window: window.Calendar(window.Month, berlin), Export: true},
		"thirty days":  {Quota: 9, Window: window.Aligned(30 * 24 * time.Hour)},
	}
	for name, w := range map[string]window.Window{
		"sliding":  window.Sliding(time.Hour),
		"cells":    window.Cells(time.Hour, 60),
		"fixed":    window.Fixed(time.Hour),
		"calendar": window.Calendar(window.Day, berlin),
		"bucket":   window.Bucket(time.Hour, 0),
	} {
		for _, m := range []window.Measure{window.Count, window.Sum, window.Distinct} {
			l := window.Limit{Quota: 12, Measure: m, Window: w}
			if m == window.Sum {
				l.Quota, l.Export = 1_000_000, true
			}
			if _, err := window.Compile(l); err == nil {
				all[fmt.Sprint(name, " ", m)] = l
			}
		}
	}
	compiled := make(map[string]*window.Compiled, len(all))
	for name, l := range all {
		compiled[name] = window.MustCompile(l)
	}
	return compiled
}

// fill takes until the limit denies, and returns the op that was denied. It
// reports false for counters, which deny nothing.
func (s *stage) fill(l *window.Compiled, key string) (op store.Op, denied window.Result, ok bool) {
	op = hit("s", l, key)
	op.N = max(1, l.Quota/12)
	for i := range 100 {
		op.Member = fmt.Append(nil, "member", i)
		if r := s.one(store.Take, op); !r.Allowed {
			return op, r, true
		}
	}
	return op, window.Result{}, false
}

// A denied take fits after its RetryAfter, and not a microsecond before.
func fitAfterRetryAfter(s *stage) {
	s.each(func(s *stage, l *window.Compiled) {
		op, denied, ok := s.fill(l, "k")
		if !ok {
			return
		}
		s.at(denied.RetryAfter - time.Microsecond)
		if r := s.one(store.Take, op); r.Allowed || r.RetryAfter != time.Microsecond {
			s.Errorf("1µs before retry-after: got %+v, want denied for 1µs", r)
		}
		s.at(denied.RetryAfter)
		if r := s.one(store.Take, op); !r.Allowed {
			s.Errorf("after retry-after: got %+v, want allowed", r)
		}
	})
}

// After its ResetAfter a key answers like an unused one, and not a microsecond
// before.
func unusedAfterResetAfter(s *stage) {
	s.each(func(s *stage, l *window.Compiled) {
		op, _, _ := s.fill(l, "k")
		reset := s.one(store.Check, op).ResetAfter
		s.at(reset - time.Microsecond)
		if r := s.one(store.Check, op); r.ResetAfter != time.Microsecond {
			s.Errorf("1µs before reset-after %v: got %+v, want reset after 1µs", reset, r)
		}
		s.at(reset)
		unused := op
		unused.Key = []byte("unused")
		for _, verb := range []store.Verb{store.Check, store.Take} {
			if got, want := s.one(verb, op), s.one(verb, unused); got != want {
				s.Errorf("%v after reset-after %v: got %+v, want as an unused key: %+v", verb, reset, got, want)
			}
		}
	})
}

// At an earlier instant a full key is still full, and later it continues where it was.
func timeGoesBack(s *stage) {
	s.each(func(s *stage, l *window.Compiled) {
		op, denied, ok := s.fill(l, "k")
		if !ok {
			return
		}
		for _, back := range []time.Duration{time.Microsecond, time.Minute, time.Hour, 24 * time.Hour, 62 * 24 * time.Hour} {
			s.at(-back)
			if r := s.one(store.Take, op); r.Allowed || r.Used < denied.Used {
				s.Errorf("%v back: got %+v, want denied with %d used", back, r, denied.Used)
			}
		}
		s.at(denied.RetryAfter)
		if r := s.one(store.Take, op); !r.Allowed {
			s.Errorf("after retry-after: got %+v, want allowed", r)
		}
	})
}

// A key keeps its count when the quota of its space changes.
func quotaChanges(s *stage) {
	s.each(func(s *stage, l *window.Compiled) {
		more := *l.Limit
		if more.Quota == window.Unlimited || more.After.Count > 0 {
			return
		}
		op := hit("s", l, "k")
		op.Member = []byte("ann")
		s.one(store.Take, op)
		more.Quota, more.Window.Burst = more.Quota*3, 0
		op.Limit, op.Member = window.MustCompile(more), []byte("bob")
		if r := s.one(store.Take, op); r.Before < 1 || !r.Allowed || r.Quota != more.Quota {
			s.Errorf("got %+v, want allowed with 1 before, of %d", r, more.Quota)
		}
	})
}

// read returns what Read answers for op.
func (s *stage) read(op store.Op) window.Reading {
	s.Helper()
	r, err := s.Store.Read(s.Context(), &op)
	if err != nil {
		s.Fatalf("read: got error %v", err)
	}
	return r
}
