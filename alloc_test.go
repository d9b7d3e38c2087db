//go:build !race

// The race detector makes sync.Pool forget at random, so these run without it.

package weir_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

func TestTakeAllocatesNothing(t *testing.T) {
	takesNothing(t, engine(t, twoRules))
	takesNothing(t, engine(t, []rule.Rule{
		{Name: "given", Per: []string{"user"}, Quota: &rule.Quota{Of: "quota", Most: 1000}, Window: window.Sliding(time.Hour)},
		{Name: "team", Per: []string{"team"}, Quota: &rule.Quota{Of: "quota", Most: 5000}, Window: window.Fixed(time.Hour)},
	}))
}

// Nor does a take that rules after a verdict count.
func TestRestAllocatesNothing(t *testing.T) {
	set, err := rule.New([]rule.Rule{
		{Name: "members", When: equals("action", "post"), Then: "member", CountRest: true},
		{Name: "blocked", When: equals("team", "red"), Then: rule.Deny, CountRest: true},
		{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour), Feedback: map[string]int64{"solved": 1}},
		{Name: "teams", Per: []string{"team"}, Window: window.Sliding(time.Hour)},
	}, map[string]rule.Outcome{"member": {Allow: true}})
	if err != nil {
		t.Fatal(err)
	}
	takesNothing(t, engineOf(t, set))
	takesNothing(t, engine(t, []rule.Rule{
		{Name: "first", Per: []string{"user"}, Quota: &rule.Quota{Value: 500}, Window: window.Sliding(time.Hour)},
		{Name: "staff", When: equals("action", "post"), Then: rule.Allow, CountRest: true},
		{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
	}))
}

func takesNothing(t *testing.T, e *weir.Engine) {
	t.Helper()
	req := weir.Request{Attributes: weir.Attributes("action", "post", "user", "ann", "team", "red", "quota", "7")}
	var d weir.Decision
	got := testing.AllocsPerRun(1000, func() {
		if err := e.Do(context.Background(), store.Take, &req, &d); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations a take, want 0", got)
	}
}

func TestAllowAllocatesNothing(t *testing.T) {
	m := weir.MustLimiter(weir.Sliding(1_000_000, time.Hour))
	defer m.Close()
	got := testing.AllocsPerRun(1000, func() {
		if _, err := m.Allow(context.Background(), "user:42"); err != nil {
			t.Fatal(err)
		}
		if err := m.Wait(context.Background(), "user:42"); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations a call, want 0", got)
	}
}

// Nor does a call under several limits, or with a key that is too long for the stack.
func TestSeveralLimitsAllocateNothing(t *testing.T) {
	m := weir.MustLimiter(weir.Sliding(1_000_000, time.Hour), weir.And(weir.Fixed(1_000_000, time.Minute), weir.Bucket(1_000_000, time.Second, 0)))
	defer m.Close()
	key := strings.Repeat("long", 100)
	got := testing.AllocsPerRun(1000, func() {
		if _, err := m.Allow(context.Background(), "user:42"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Check(context.Background(), key); err != nil {
			t.Fatal(err)
		}
		if n, _, err := m.AllowUpTo(context.Background(), "user:42", 3); err != nil || n != 3 {
			t.Fatal(n, err)
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations a call, want 0", got)
	}
}

// Nor do a take that holds, its renewal and its settle, beside rules that do not
// hold, nor a ban.
func TestHoldsAllocateNothing(t *testing.T) {
	e := engine(t, []rule.Rule{
		{Name: "points", Per: []string{"user"}, Quota: &rule.Quota{Value: 500}, Window: window.Sliding(time.Hour), Hold: 5 * time.Minute},
		{Name: "flight", Per: []string{"user"}, Quota: &rule.Quota{Value: 50}, Window: window.Held(30 * time.Second)},
		{Name: "posts", Per: []string{"team"}, Quota: &rule.Quota{Value: 5000000}, Window: window.Fixed(time.Hour)},
		{Name: "banned", Per: []string{"team"}, Quota: &rule.Quota{Value: 0}, Window: window.Sliding(time.Hour), Ban: window.Ban{For: time.Minute}, Mode: rule.Shadow},
	})
	take := weir.Request{Attributes: weir.Attributes("action", "post", "user", "ann", "team", "red")}
	end := take
	var d weir.Decision
	do := func(verb store.Verb, r *weir.Request) {
		if err := e.Do(context.Background(), verb, r, &d); err != nil || verb != store.Take && !d.Usages[0].Held {
			t.Fatalf("%v: got %+v and error %v, want it held", verb, d.Usages, err)
		}
	}
	cycle := func(last store.Verb) func() {
		return func() {
			do(store.Take, &take)
			end.Receipt = d.Receipt
			do(store.Renew, &end)
			do(last, &end)
		}
	}
	do(store.Take, &take) // so that no key comes and goes
	for _, last := range []store.Verb{store.Settle, store.Cancel} {
		if got := testing.AllocsPerRun(100, cycle(last)); got != 0 {
			t.Errorf("got %v allocations a take, renew and %v, want 0", got, last)
		}
	}
}

// Ten requests are taken as one without an allocation.
func TestTogetherAllocatesNothing(t *testing.T) {
	roomy := perUser[0]
	roomy.Quota = &rule.Quota{Value: 1_000_000}
	e := engine(t, []rule.Rule{roomy})
	var all [][]string
	for i := range 10 {
		all = append(all, []string{"user", fmt.Sprint("user-", i)})
	}
	items := itemsOf(all...)
	if n := testing.AllocsPerRun(200, func() {
		if allowed, err := e.Run(t.Context(), items, run.Options{Together: true}); err != nil || !allowed {
			t.Fatal(allowed, err)
		}
	}); n > 0.5 { // states grow
		t.Errorf("got %v allocations, want none", n)
	}
}
