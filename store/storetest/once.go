package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// once makes a call with a record, and returns its results and whether it had its record.
func (s *stage) once(verb store.Verb, r *store.Op, ops ...store.Op) (results []window.Result, found bool) {
	s.Helper()
	calls := []store.Call{{Verb: verb, Ops: ops, Once: r}}
	if err := errors.Join(s.Store.Do(s.Context(), calls), calls[0].Err); err != nil {
		s.Fatalf("%v with the record %s: got error %v", verb, r.Key, err)
	}
	for i := range ops {
		results = append(results, ops[i].Result)
	}
	return results, r.Result.Before == 1
}

// A call whose record is there counts nothing, and has the results of the first one, whatever happened since.
func onceCounts(s *stage) {
	s.each(func(s *stage, l *window.Compiled) {
		op := hit("rule", l, "k")
		op.Member = []byte("m")
		for _, verb := range []store.Verb{store.Take, store.Record, store.Refund} {
			first, found := s.once(verb, record(verb.String(), "r", time.Minute), op)
			if found {
				s.Fatalf("%v: got a record before the call", verb)
			}
			other := op
			other.Member = []byte("another")
			s.do(store.Record, other)
			before := s.one(store.Check, times(0, op))
			again, found := s.once(verb, record(verb.String(), "r", time.Minute), op)
			if !found || again[0] != first[0] {
				s.Errorf("%v again: got %+v, record %v, want %+v", verb, again[0], found, first[0])
			}
			if after := s.one(store.Check, times(0, op)); after != before {
				s.Errorf("%v again: got %+v, want %+v as before", verb, after, before)
			}
		}
	})
}

// A record of another request refuses the call. Nothing is counted.
func onceConflicts(s *stage) {
	op := hit("rule", hourly(5), "k")
	s.once(store.Take, record("a", "one", time.Minute), op)
	for _, verb := range []store.Verb{store.Take, store.Record} {
		calls := []store.Call{{Verb: verb, Ops: []store.Op{op}, Once: record("a", "two", time.Minute)}}
		if err := s.Store.Do(s.Context(), calls); err != nil || !errors.Is(calls[0].Err, store.ErrConflict) {
			s.Errorf("got errors %v and %v, want %v", err, calls[0].Err, store.ErrConflict)
		}
	}
	s.used(1, op)
	s.once(store.Take, record("b", "two", time.Minute), op)
	s.used(2, op)
}

// A record that has ended is no record.
func onceEnds(s *stage) {
	op := hit("rule", hourly(5), "k")
	s.once(store.Take, record("a", "one", time.Minute), op)
	s.at(time.Minute - time.Microsecond)
	if _, found := s.once(store.Take, record("a", "one", time.Hour), op); !found {
		s.Error("the record has ended too early")
	}
	s.at(time.Minute)
	if _, found := s.once(store.Take, record("a", "two", time.Minute), op); found {
		s.Error("the record has not ended")
	}
	s.used(2, op)
}

// The ops of a call find their results by their keys. One that the first call did not have gets the zero Result.
func onceOtherOps(s *stage) {
	a, b, c := hit("a", hourly(5), "k"), times(2, hit("b", hourly(9), "k")), hit("c", hourly(5), "k")
	first, _ := s.once(store.Take, record("a", "one", time.Minute), a, b)
	ops := []store.Op{times(7, b), c}
	again, found := s.once(store.Take, record("a", "one", time.Minute), ops...)
	if !found {
		s.Skip("the record is in the slot of the first op") // of a cluster
	}
	if again[0] != first[1] || again[1] != (window.Result{}) || ops[0].N != 2 {
		s.Errorf("got %+v, %d hits, want %+v and nothing", again, ops[0].N, first[1])
	}
	s.used(0, c)
	s.used(2, b)
}

// The answer of a take that was denied is kept if it has counted something, or has banned.
func onceDenied(s *stage) {
	a, b, c := hit("a", hourly(1), "k"), hit("b", hourly(5), "k"), hit("c", counter(), "k")
	c.Role = store.Always
	denied := a
	denied.CountDenied = true
	strikes := hit("strikes", window.MustCompile(window.Limit{Quota: 1, Window: window.Sliding(time.Hour), Ban: window.Ban{For: time.Minute}}), "k")
	for name, ops := range map[string][]store.Op{"a": {a, b}, "counter": {a, b, c}, "denied": {denied, b}, "ban": {strikes, b}} {
		s.one(store.Take, ops[0])
		first, _ := s.once(store.Take, record(name, "one", time.Minute), ops...)
		if first[0].Allowed {
			s.Fatal("got an allowed take")
		}
		s.one(store.Set, times(0, ops[0]))
		again, found := s.once(store.Take, record(name, "one", time.Minute), ops...)
		switch {
		case name == "a":
			if found || !again[0].Allowed {
				s.Errorf("got %+v, record %v, want a new decision", again, found)
			}
			s.one(store.Refund, b)
		case !found || fmt.Sprint(again) != fmt.Sprint(first):
			s.Errorf("%s: got %+v, record %v, want %+v", name, again, found, first)
		}
		s.used(0, b)
		s.one(store.Set, times(0, ops[0]))
	}
	s.used(1, c)
}

// A take that was denied stays denied without the op that denied it: the record tells so, and the wait.
func onceStaysDenied(s *stage) {
	a, b, c := hit("a", hourly(1), "k"), hit("b", hourly(5), "k"), hit("c", counter(), "k")
	c.Role = store.Shadow
	s.one(store.Take, a)
	for _, test := range []struct {
		key  string
		role store.Role
		ops  []store.Op
		wait time.Duration
	}{
		{"limit", store.Enforce, []store.Op{b, a, c}, time.Hour},
		{"caller", store.Look, []store.Op{b, c}, window.Never},
		{"both", store.Look, []store.Op{b, a, c}, window.Never},
		{"shadow", store.Enforce, []store.Op{b, c}, 0},
	} {
		r := record(test.key, "one", time.Minute)
		r.Role = test.role
		s.once(store.Take, r, test.ops...)
		again := record(test.key, "one", time.Minute)
		if _, found := s.once(store.Take, again, b); !found || again.Result.Allowed != (test.wait == 0) || again.Result.RetryAfter != test.wait {
			s.Errorf("%s: got %+v, want a wait of %v", test.key, again.Result, test.wait)
		}
	}
}

// A take that has its record has the hold of the first one.
func onceHolds(s *stage) {
	l := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour), Hold: 10 * time.Minute})
	take := func(id byte) store.Op {
		op := hit("rule", l, "k")
		op.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{id, 11: 3}}}
		return op
	}
	first, again := take(1), take(2)
	s.once(store.Take, record("a", "one", time.Minute), first)
	s.at(time.Second)
	if _, found := s.once(store.Take, record("a", "one", time.Minute), again); !found || *again.Hold != *first.Hold {
		s.Errorf("got the hold %+v, want %+v", *again.Hold, *first.Hold)
	}
	end := again
	end.N, end.Hold = 2, &store.Hold{Hold: again.Hold.Hold}
	if got, _ := s.once(store.Settle, record("b", "one", time.Minute), end); !got[0].Held {
		s.Error("a settle found no hold")
	}
	end.Hold = &store.Hold{Hold: again.Hold.Hold}
	if got, found := s.once(store.Settle, record("b", "one", time.Minute), end); !found || !got[0].Held {
		s.Error("a settle that was repeated got another answer")
	}
	if _, found := s.once(store.Record, record("b", "one", time.Minute), end); !found {
		s.Error("a record of the hold did not meet that of its end")
	}
	missed := take(9)
	missed.N = -1
	s.once(store.Settle, record("c", "one", time.Minute), missed)
	missed.N = 3
	calls := []store.Call{{Verb: store.Record, Ops: []store.Op{missed}, Once: record("c", "one", time.Microsecond)}}
	if err := errors.Join(s.Store.Do(s.Context(), calls), calls[0].Err); err != nil {
		s.Fatal(err)
	}
	if got := calls[0].Ops[0]; got.N != -1 || got.Result.Held || calls[0].Once.Result.Before != 1 {
		s.Errorf("a record of a hold that its end did not find: got %d hits and %+v, want those of the end", got.N, got.Result)
	}
	s.used(2, first)
}

// A call that only looks for its record is not decided without one.
func onceLooks(s *stage) {
	op := hit("rule", hourly(5), "k")
	if got, found := s.once(store.Take, record("a", "one", 0), op); found || got[0] != (window.Result{}) {
		s.Errorf("got %+v, record %v, want nothing", got[0], found)
	}
	s.used(0, op)
	first, _ := s.once(store.Take, record("a", "one", time.Minute), op)
	if got, found := s.once(store.Take, record("a", "one", 0), op); !found || got[0] != first[0] {
		s.Errorf("got %+v, record %v, want %+v", got[0], found, first[0])
	}
}

// The first of several calls of one Do with one record counts.
func onceTogether(s *stage) {
	op := hit("rule", hourly(50), "k")
	calls := make([]store.Call, 9)
	for i := range calls {
		calls[i] = store.Call{Verb: store.Take, Ops: []store.Op{op}, Once: record("a", "one", time.Minute)}
	}
	if err := s.Store.Do(s.Context(), calls); err != nil {
		s.Fatal(err)
	}
	for i, c := range calls {
		if found := c.Once.Result.Before == 1; c.Err != nil || found != (i > 0) || c.Ops[0].Result != calls[0].Ops[0].Result {
			s.Errorf("call %d: got %+v, record %v, error %v", i, c.Ops[0].Result, found, c.Err)
		}
	}
	s.used(1, op)
}

// One of many callers at the same time counts, and all get its answer.
func onceUnderLoad(s *stage) {
	op := times(3, hit("rule", hourly(1000), "k"))
	other := hit("other", hourly(1000), "k")
	var callers sync.WaitGroup
	var firsts atomic.Int64
	for range 64 {
		callers.Go(func() {
			for range 4 {
				calls := []store.Call{{Verb: store.Take, Ops: []store.Op{op, other}, Once: record("a", "one", time.Minute)}}
				if err := errors.Join(s.Store.Do(s.Context(), calls), calls[0].Err); err != nil {
					s.Error(err)
					return
				}
				if calls[0].Once.Result.Before == 0 {
					firsts.Add(1)
				}
				if got := calls[0].Ops[0].Result.Used; got != 3 {
					s.Errorf("got %d used, want 3", got)
				}
			}
		})
	}
	callers.Wait()
	if n := firsts.Load(); n != 1 {
		s.Errorf("got %d first calls, want 1", n)
	}
	s.used(3, op)
	s.used(1, other)
}

// counter returns a limit without a quota.
func counter() *window.Compiled {
	return window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Cells(time.Hour, 6)})
}
