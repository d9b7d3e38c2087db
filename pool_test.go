package weir_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// blank is a store that wants no results in the ops that it is asked for.
type blank struct {
	store.Store
	t     *testing.T
	calls map[store.Verb]int
}

func (b *blank) Do(ctx context.Context, calls []store.Call) error {
	for _, c := range calls {
		b.calls[c.Verb]++
		for i := range c.Ops {
			if c.Ops[i].Result != (window.Result{}) {
				b.t.Errorf("%v of %s %q: has the result %+v of an earlier call", c.Verb, c.Ops[i].Space.Name(), c.Ops[i].Key, c.Ops[i].Result)
			}
		}
	}
	return b.Store.Do(ctx, calls)
}

// A store gets ops without the results of earlier requests, whose memory they use: it may answer with an outage and leave them.
func TestOpsComeWithoutResults(t *testing.T) {
	t.Parallel()
	s := &blank{memstore.New(), t, map[store.Verb]int{}}
	defer s.Close()
	quota := func(name string) rule.Rule {
		return rule.Rule{Name: name, Per: []string{"user"}, Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Hour)}
	}
	e := engine(t, []rule.Rule{quota("a"), quota("b")}, weir.WithStore(s))
	m := weir.MustLimiter(weir.Sliding(3, time.Hour), weir.And(weir.Fixed(3, time.Minute)), weir.WithStore(s), weir.WithName("m"))
	defer m.Close()
	for i := range 20 {
		request := weir.Request{Attributes: weir.Attributes("user", fmt.Sprint(i%3))}
		if _, err := e.Take(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		items := []weir.Item{{Verb: store.Take, Request: request}, {Verb: store.Check, Request: request}}
		e.DoAll(t.Context(), items)
		for _, options := range []run.Options{{Together: true}, {Assign: make([]run.Assignment, 2)}} {
			for n := range options.Assign {
				options.Assign[n] = run.Assignment{Settles: make([]run.Settle, 1), Used: 1, Over: 1, Want: 1, Length: time.Minute}
			}
			if _, err := e.Run(t.Context(), items, options); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Allow(t.Context(), fmt.Sprint(i%3)); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []store.Verb{store.Check, store.Take, store.Record, store.Settle, store.Reserve} {
		if s.calls[v] == 0 {
			t.Errorf("the store got no %v", v)
		}
	}
}
