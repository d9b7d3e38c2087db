package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

var flightRules = []rule.Rule{
	{Name: "flight", Per: []string{"user"}, Quota: &rule.Quota{Value: 2}, Window: window.Held(30 * time.Second)},
	{Name: "tokens", Per: []string{"user"}, Measure: window.Sum, Of: "tokens", Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour), Hold: time.Minute},
}

func ask(user, tokens string) question {
	return question{attributes: weir.Attributes("user", user, "tokens", tokens)}
}

// A call keeps its place however long it runs, and gives it back at its end.
func TestCallsKeepTheirPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := guardtest.Engine(t, flightRules, nil)
		g := must(byRules(e))
		calls := make([]*guard.Call, 3)
		for i := range calls {
			calls[i] = must(g.Take(t.Context(), ask("ann", "10")))
			if want := i < 2; calls[i].Allowed != want || calls[i].Decision().Receipt.IsZero() == want {
				t.Fatalf("call %d: got %+v", i, calls[i].Decision())
			}
		}
		time.Sleep(20 * time.Minute)
		if n := used(t, e, "flight", "ann"); n != 2 {
			t.Errorf("got %d in flight after 20 minutes, want 2", n)
		}
		g.End(calls[0])
		if n := used(t, e, "flight", "ann"); n != 1 {
			t.Errorf("got %d in flight after an end, want 1", n)
		}
		end := calls[1].Detach()
		if g.End(calls[1]); used(t, e, "flight", "ann") != 1 {
			t.Error("the call ended, although its end was detached")
		}
		end()
		if n := used(t, e, "flight", "ann"); n != 0 {
			t.Errorf("got %d in flight after all ends, want 0", n)
		}
		if n := used(t, e, "tokens", "ann"); n != 20 {
			t.Errorf("got %d tokens, want the 20 that were held", n)
		}
		end()
		g.End(calls[2])
		if n := used(t, e, "tokens", "ann"); n != 20 {
			t.Errorf("got %d tokens after a second end", n)
		}
	})
}

// unbounded fails the test if a call has another time-out than the decider's own. leave is called during a take.
type unbounded struct {
	guard.Decider
	t     *testing.T
	leave func()
}

func (u unbounded) Do(ctx context.Context, verb store.Verb, r *weir.Request, d *weir.Decision) error {
	if verb == store.Take {
		u.leave()
	}
	if _, ok := ctx.Deadline(); ok || ctx.Err() != nil {
		u.t.Errorf("%v: got a context with a deadline, or %v", verb, ctx.Err())
	}
	return u.Decider.Do(ctx, verb, r, d)
}

// A client's own time-out bounds the take, the renewals and the end of a call, also if who sent the request leaves during the
// take: the holds are released.
func TestHoldsHaveTheTimeoutOfTheDecider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := guardtest.Engine(t, flightRules, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		g := must(byRules(unbounded{e, t, cancel}))
		c := must(g.Take(ctx, ask("ann", "10")))
		time.Sleep(time.Minute)
		if n := used(t, e, "flight", "ann"); n != 1 {
			t.Errorf("got %d in flight after a minute, want 1", n)
		}
		g.End(c)
		if n := used(t, e, "flight", "ann"); n != 0 {
			t.Errorf("got %d in flight after the end, want 0", n)
		}
		if _, err := g.Take(ctx, ask("ann", "10")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v of a request that is over, want that it is", err)
		}
	})
}

// A hold is settled at what the call really cost.
func TestCallsCostWhatTheyCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := guardtest.Engine(t, flightRules, nil)
		g := must(byRules(e))
		for _, tokens := range []string{"7", "900"} {
			c, err := g.Take(t.Context(), ask("ann", "500"))
			if err != nil || !c.Allowed {
				t.Fatalf("got %v and allowed %v", err, c.Allowed)
			}
			c.SetAttributes(weir.Attribute{Name: "tokens", Value: "1"})
			c.SetAttributes(weir.Attribute{Name: "tokens", Value: tokens}, weir.Attribute{Name: "other", Value: "x"})
			g.End(c)
		}
		if n := used(t, e, "tokens", "ann"); n != 907 {
			t.Errorf("got %d tokens, want 907", n)
		}
		if c, err := g.Take(t.Context(), ask("ann", "500")); err != nil || c.Allowed || c.Rule() != "tokens" {
			t.Errorf("got %v, allowed %v by %q, want a denial by the real cost", err, c.Allowed, c.Rule())
		}
	})
}

// A law: however calls begin and end, a guard allows a call exactly if fewer calls of
// the user than the limit are open, and at the end nothing is in flight.
func TestLawOfPlaces(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			e := guardtest.Engine(t, []rule.Rule{{Name: "flight", Per: []string{"user"}, Quota: &rule.Quota{Value: 3}, Window: window.Held(30 * time.Second)}}, nil)
			g := must(byRules(e))
			open := map[string][]*guard.Call{}
			for range 300 {
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Second))))
				user := fmt.Sprint("user", random.IntN(3))
				list := open[user]
				if random.IntN(2) == 0 && len(list) > 0 {
					i := random.IntN(len(list))
					g.End(list[i])
					open[user] = append(list[:i], list[i+1:]...)
					continue
				}
				c := must(g.Take(t.Context(), question{attributes: weir.Attributes("user", user)}))
				if want := len(list) < 3; c.Allowed != want {
					t.Fatalf("seed %d: got allowed %v with %d open calls", seed, c.Allowed, len(list))
				}
				if c.Allowed {
					open[user] = append(list, c)
				} else {
					g.End(c)
				}
			}
			for user, list := range open {
				if n := used(t, e, "flight", user); n != int64(len(list)) {
					t.Errorf("seed %d: got %d in flight, want %d", seed, n, len(list))
				}
				for _, c := range list {
					g.End(c)
				}
				if n := used(t, e, "flight", user); n != 0 {
					t.Errorf("seed %d: got %d in flight at the end", seed, n)
				}
			}
		})
	}
}

// Middleware passes no attribute, limit or hold of one call to another.
func TestMiddlewareTogether(t *testing.T) {
	t.Parallel()
	e := guardtest.Engine(t, []rule.Rule{
		{Name: "flight", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Held(30 * time.Second)},
		{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour)},
	}, nil)
	m := must(guard.Rules(e, func(user string, list []weir.Attribute) []weir.Attribute {
		return append(list, weir.Attributes("user", user)...)
	}, guard.Options[string]{}))
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			user := fmt.Sprint("user", n)
			for i := range 100 {
				call, err := m.Take(context.Background(), user)
				if err != nil || !call.Allowed {
					t.Errorf("%s: got %v and %+v", user, err, call)
					return
				}
				d := call.Decision()
				if d.Usages[0].Key != user || d.Usages[1].Used != int64(i+1) || len(call.Limits.Policies) != 2 {
					t.Errorf("%s, call %d: got %+v", user, i, d.Usages)
				}
				second, err := m.Take(context.Background(), user)
				if err != nil || second.Allowed || second.Rule() != "flight" {
					t.Errorf("%s: got %v, want a denial by flight", user, err)
					return
				}
				m.End(second)
				m.End(call)
			}
		})
	}
	group.Wait()
}
