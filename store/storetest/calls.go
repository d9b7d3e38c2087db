package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// The calls of one Do see each other's hits in their order, and a call that is
// refused or denied changes nothing for the others. A Do may have more calls
// than a store sends at once.
func manyCalls(s *stage) {
	limit := hourly(2)
	same, other := hit("s", limit, "k"), hit("s", limit, "other")
	calls := []store.Call{
		{Verb: store.Take, Ops: []store.Op{same}},
		{Verb: store.Take, Ops: []store.Op{same, same}}, // refused
		{Verb: store.Take, Ops: []store.Op{same, other}},
		{Verb: store.Take, Ops: []store.Op{same, other}}, // denied
		{Verb: store.Refund, Ops: []store.Op{same}},
		{Verb: store.Take, Ops: []store.Op{same}},
		{Verb: store.Check, Ops: []store.Op{other}},
		{Verb: store.Take},
	}
	if err := s.Store.Do(s.Context(), calls); err != nil {
		s.Fatalf("got error %v, want none", err)
	}
	got := ""
	for _, c := range calls {
		if c.Err != nil {
			got += fmt.Sprint(errors.Is(c.Err, store.ErrRepeated), "; ")
			continue
		}
		for _, op := range c.Ops {
			got += fmt.Sprintf("%v%d ", op.Result.Allowed, op.Result.Used)
		}
		got += "; "
	}
	const want = "true1 ; true; true2 true1 ; false2 true1 ; true1 ; true2 ; true1 ; ; "
	if got != want {
		s.Errorf("got %s\nwant %s", got, want)
	}
	s.used(2, same)
	s.used(1, other)
	if err := s.Store.Do(s.Context(), nil); err != nil {
		s.Errorf("no calls: got error %v, want none", err)
	}

	many := make([]store.Call, 500)
	wide := hit("wide", hourly(400), "k")
	for i := range many {
		many[i] = store.Call{Verb: store.Take, Ops: []store.Op{wide, hit("s", limit, fmt.Sprint(i))}}
	}
	if err := s.Store.Do(s.Context(), many); err != nil {
		s.Fatalf("%d calls: got error %v", len(many), err)
	}
	for i, c := range many {
		if c.Err != nil || c.Ops[0].Result.Allowed != (i < 400) || c.Ops[0].Result.Used > 400 {
			s.Fatalf("call %d of %d: got %+v, %v, want allowed %v", i, len(many), c.Ops[0].Result, c.Err, i < 400)
		}
	}
}

// Spaces with one ID in several namespaces have their own counters.
func namespaces(s *stage) {
	limit := hourly(5)
	for i, namespace := range []string{"", "a", "b", "a:", "s"} {
		op := hit("s", limit, "k")
		op.Space = store.NewSpace(namespace, "s", "", 0)
		if r := s.one(store.Take, times(int64(i)+1, op)); r.Before != 0 || r.Used != int64(i)+1 {
			s.Errorf("first take in namespace %q: got %d before and %d used, want 0 and %d", namespace, r.Before, r.Used, i+1)
		}
	}
	op := hit("s", limit, "k")
	op.Space = store.NewSpace("a", "s", "", 0)
	if err := s.Store.Forget(s.Context(), &op); err != nil {
		s.Errorf("forget: got error %v", err)
	}
	s.used(0, op)
	s.used(1, hit("s", limit, "k"))
}

// Read returns the cells of a cells window, the period of a calendar window and the dates of a
// sliding window, with their hits.
func history(s *stage) {
	cells := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Cells(time.Hour, 60)})
	op := hit("cells", cells, "k")
	s.one(store.Record, times(3, op))
	s.at(2 * time.Minute)
	s.one(store.Record, times(4, op))
	r := s.read(op)
	if len(r.History) != 3 || r.History[0].Hits != 3 || r.History[1].Hits != 0 || r.History[2].Hits != 4 ||
		r.History[0].Start != start || r.History[0].Length != time.Minute {
		s.Errorf("cells: got %+v, want 3, 0 and 4 a minute from %v", r.History, start)
	}
	if got := [...]int64{r.Used, r.Count(time.Hour), r.Count(time.Minute)}; got != [...]int64{7, 7, 4} {
		s.Errorf("cells: got %v used, in an hour and in a minute, want 7, 7 and 4", got)
	}
	day := hit("day", window.MustCompile(window.Limit{Quota: 9, Window: window.Calendar(window.Day, nil)}), "k")
	s.one(store.Take, times(2, day))
	if r := s.read(day); len(r.History) != 1 || r.History[0].Hits != 2 || r.History[0].Length != 24*time.Hour {
		s.Errorf("day: got %+v, want one period of 24h with 2", r.History)
	}
	sliding := hit("sliding", hourly(3), "k")
	s.one(store.Take, times(2, sliding))
	if r := s.read(sliding); len(r.History) != 1 || r.History[0].Hits != 2 || r.History[0].Length != 0 {
		s.Errorf("sliding: got %+v, want 2 hits at one instant", r.History)
	}
}
