package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// A batch answers what its requests would have been answered one by one, in
// their order, on random rules with verdicts and those that wait after them.
func TestDoAllIsDoInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) { // the clock stands still
			r := rand.New(rand.NewPCG(seed, 9))
			ru := make([]rule.Rule, 1+r.IntN(8))
			for i := range ru {
				ru[i] = randomRule(r, i)
			}
			set, err := rule.New(ru, map[string]rule.Outcome{"member": {Allow: true}, "captcha": {}})
			if err != nil {
				t.Fatal(err)
			}
			together, _ := weir.NewEngine(set)
			alone, _ := weir.NewEngine(set)
			defer together.Close()
			defer alone.Close()
			for range 3 {
				items := make([]weir.Item, r.IntN(40))
				for i := range items {
					items[i].Verb = []store.Verb{store.Take, store.Take, store.Check, store.Record, store.Refund}[r.IntN(5)]
					items[i].Request = weir.Request{
						Attributes: weir.Attributes("user", fmt.Sprint(r.IntN(2)), "a", fmt.Sprint(r.IntN(2)), "b", fmt.Sprint(r.IntN(2))),
						Hits:       int64(r.IntN(4) - 1),
					}
				}
				together.DoAll(t.Context(), items)
				for i, item := range items {
					var want weir.Decision
					err := alone.Do(t.Context(), item.Verb, &item.Request, &want)
					if fmt.Sprint(err) != fmt.Sprint(item.Err) {
						t.Fatalf("seed %d, item %d: got error %v, want %v", seed, i, item.Err, err)
					}
					if err == nil && !reflect.DeepEqual(item.Decision, want) {
						t.Fatalf("seed %d, item %d, %v %+v:\ngot  %+v\nwant %+v", seed, i, item.Verb, item.Request, item.Decision, want)
					}
				}
			}
		})
	}
}

// A batch in an outage: each request follows its own rules' policies.
func TestDoAllInAnOutage(t *testing.T) {
	t.Parallel()
	e, s := shakyEngine(t, []rule.Rule{
		{Name: "out", When: equals("action", "post"), Per: []string{"user"}, Quota: &rule.Quota{Value: 8}, Window: window.Sliding(time.Hour)},
		{Name: "closed", When: equals("action", "pay"), Per: []string{"user"}, Quota: &rule.Quota{Value: 8}, Window: window.Sliding(time.Hour), OnOutage: rule.OutageDeny},
		{Name: "up", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
	})
	s.set(true, "out", "closed")
	items := make([]weir.Item, 9)
	for i := range items {
		action := []string{"post", "pay", "read"}[i%3]
		items[i] = weir.Item{Verb: store.Take, Request: weir.Request{Attributes: weir.Attributes("action", action, "user", action)}}
	}
	e.DoAll(t.Context(), items)
	for i, want := range []string{
		"true out 1/2 up 1/5 ", "false up 0/5 ", "true up 1/5 ",
		"true out 2/2 up 2/5 ", "false up 0/5 ", "true up 2/5 ",
		"false out 2/2 up 2/5 ", "false up 0/5 ", "true up 3/5 ",
	} {
		d := items[i].Decision
		if got := fmt.Sprint(d.Allowed, " ", counts(d)); got != want || items[i].Err != nil || d.Degraded != (i%3 < 2) {
			t.Errorf("item %d: got %s, %v, degraded %v, want %s", i, got, items[i].Err, d.Degraded, want)
		}
	}
	if s.asked != 2 {
		t.Errorf("got the store asked %d times, want 2", s.asked)
	}
}

func TestDoAllErrors(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)}})
	user := weir.Request{Attributes: weir.Attributes("user", "ann")}
	items := []weir.Item{{Verb: store.Take, Request: user}, {Verb: store.Take, Request: weir.Request{Hits: -2}}, {Verb: store.Take, Request: user}}
	e.DoAll(t.Context(), items)
	var f *fault.Fault
	if items[0].Err != nil || !errors.As(items[1].Err, &f) || f.Path != "hits" || items[2].Err != nil {
		t.Errorf("got %v, %v, %v, want only the second refused", items[0].Err, items[1].Err, items[2].Err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	e.DoAll(gone, items[:1])
	if !errors.Is(items[0].Err, context.Canceled) {
		t.Errorf("a context that is done: got %v, want %v", items[0].Err, context.Canceled)
	}
	e.DoAll(t.Context(), nil)
	if u, _ := e.Usage(t.Context(), "posts", user.Attributes); u.Used != 2 {
		t.Errorf("got %d used, want 2", u.Used)
	}
	_ = e.Close()
	e.DoAll(t.Context(), items[:1])
	if !errors.Is(items[0].Err, weir.ErrClosed) {
		t.Errorf("a closed engine: got %v, want %v", items[0].Err, weir.ErrClosed)
	}
}
