package weir_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// equals returns the condition that an attribute has a value.
func equals(attribute, value string) []rule.Condition {
	return []rule.Condition{{Attribute: attribute, Test: rule.Equal(value)}}
}

func compile(tb testing.TB, rules []rule.Rule) *rule.Set {
	tb.Helper()
	set, err := rule.New(rules, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func engine(tb testing.TB, rules []rule.Rule, options ...weir.Option) *weir.Engine {
	tb.Helper()
	return engineOf(tb, compile(tb, rules), options...)
}

func engineOf(tb testing.TB, set *rule.Set, options ...weir.Option) *weir.Engine {
	tb.Helper()
	e, err := weir.NewEngine(set, options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	return e
}

var twoRules = []rule.Rule{
	{Name: "per-user", When: equals("action", "post"), Per: []string{"user"}, Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour)},
	{Name: "per-team", When: equals("action", "post"), Per: []string{"team"}, Quota: &rule.Quota{Value: 1500}, Window: window.Sliding(time.Hour)},
	{Name: "seen", Window: window.Sliding(time.Hour)},
}

// Users of one team post at once: no user and no team passes its quota, and
// what a user was denied for the team's sake was not counted for the user.
func TestTakeIsAllOrNothingUnderLoad(t *testing.T) {
	t.Parallel()
	e := engine(t, twoRules)
	var admitted [4]atomic.Int64
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			user := g % len(admitted)
			req := weir.Request{Attributes: weir.Attributes("action", "post", "user", fmt.Sprint(user), "team", fmt.Sprint(user/2))}
			for range 100 {
				d, err := e.Take(t.Context(), req)
				if err != nil {
					t.Error(err)
					return
				}
				if d.Allowed {
					admitted[user].Add(1)
				}
			}
		})
	}
	all.Wait()
	for team := range 2 {
		a, b := admitted[2*team].Load(), admitted[2*team+1].Load()
		if a > 1000 || b > 1000 || a+b != 1500 {
			t.Errorf("team %d: admitted %d and %d, want at most 1000 each and 1500 together", team, a, b)
		}
		for user, want := range map[int]int64{2 * team: a, 2*team + 1: b} {
			u, err := e.Usage(t.Context(), "per-user", weir.Attributes("user", fmt.Sprint(user)))
			if err != nil {
				t.Fatal(err)
			}
			// 1000 in groups of 10: exact to within 9.
			if u.Used < want || u.Used > want+9 {
				t.Errorf("user %d: got %d used, want %d to %d", user, u.Used, want, want+9)
			}
		}
	}
	if u, _ := e.Usage(t.Context(), "seen", nil); u.Used != 6400 {
		t.Errorf("seen: got %d, want all 6400", u.Used)
	}
}

// Rules are swapped while requests run; the counters stay.
func TestSetRulesUnderLoad(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour)}})
	other := compile(t, []rule.Rule{
		{Name: "gone", Window: window.Sliding(time.Hour)},
		{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour), Then: rule.Deny},
	})
	first := e.Rules()
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range 200 {
				if i%20 == 0 {
					_ = e.SetRules(other)
				} else if i%20 == 10 {
					_ = e.SetRules(first)
				}
				d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann")})
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got := admitted.Load(); got != 1000 {
		t.Errorf("got %d admitted, want 1000", got)
	}
}

func TestBadInputCountsNothing(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{
		{Name: "seen", Window: window.Sliding(time.Hour)},
		{Name: "tokens", Measure: window.Sum, Of: "tokens", Quota: &rule.Quota{Value: 10}, Window: window.Sliding(time.Hour)},
		{Name: "searches", When: equals("action", "search"), Quota: &rule.Quota{Value: 10}, Window: window.Sliding(time.Hour), Feedback: map[string]int64{"solved": window.All}},
	})
	for _, tt := range []struct {
		req   weir.Request
		field string
	}{
		{weir.Request{Hits: -2}, "hits"},
		{weir.Request{Hits: window.MaxHits + 1}, "hits"},
		{weir.Request{Attributes: weir.Attributes("tokens", "many")}, "attributes.tokens"},
		{weir.Request{Attributes: weir.Attributes("tokens", "9007199254740992")}, "attributes.tokens"},
	} {
		_, err := e.Take(t.Context(), tt.req)
		var bad *fault.Fault
		if !errors.As(err, &bad) || bad.Path != tt.field {
			t.Errorf("%+v: got %v, want an fault for %s", tt.req, err, tt.field)
		}
	}
	for name, problem := range map[string]string{"solvd": `no rule has "solvd": did you mean "solved"?`, "all": `no rule has "all"`} {
		_, err := e.Refund(t.Context(), weir.Request{Feedback: name})
		if f, ok := errors.AsType[*fault.Fault](err); !ok || f.Path != "feedback" || f.Problem != problem {
			t.Errorf("feedback %s: got %v, want a fault: %s", name, err, problem)
		}
	}
	if _, err := e.Refund(t.Context(), weir.Request{Feedback: "solved"}); err != nil {
		t.Errorf("got %v for a feedback of a rule that does not match, want none", err)
	}
	var bad *fault.Fault
	if err := e.Do(t.Context(), store.Renew+1, &weir.Request{}, new(weir.Decision)); !errors.As(err, &bad) || bad.Path != "verb" {
		t.Errorf("unknown verb: got %v, want a fault for verb", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Take(canceled, weir.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if u, err := e.Usage(t.Context(), "seen", nil); err != nil || u.Used != 0 {
		t.Errorf("got %d counted (%v), want 0", u.Used, err)
	}
}

func TestClosedEngine(t *testing.T) {
	t.Parallel()
	e := engine(t, twoRules)
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Take(t.Context(), weir.Request{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want %v", err, store.ErrClosed)
	}
}

// A rule whose table is full treats new keys as its on_outage says; the keys
// that it knows go on, and so do the other rules.
func TestFullTableFollowsOnOutage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		policy  rule.Outage
		allowed bool
	}{{rule.OutageAllow, true}, {rule.OutageDeny, false}, {rule.OutageLocal, false}} {
		e := engine(t, []rule.Rule{
			{Name: "all", Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour)},
			{Name: "each", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour), MaxKeys: 2, OnOutage: tt.policy},
			{Name: "seen", Window: window.Sliding(time.Hour)},
		})
		take := func(user string) weir.Decision {
			d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", user)})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		take("ann")
		take("bob")
		d := take("cat")
		if d.Allowed != tt.allowed || !d.Degraded {
			t.Errorf("%s: new key: got allowed %v, degraded %v, want %v, true", tt.policy, d.Allowed, d.Degraded, tt.allowed)
		}
		if !tt.allowed && (d.Rule != "each" || d.RetryAfter <= 0) {
			t.Errorf("%s: new key: got rule %q, retry after %s, want each and a wait", tt.policy, d.Rule, d.RetryAfter)
		}
		if d := take("ann"); !d.Allowed || d.Degraded {
			t.Errorf("%s: known key: got allowed %v, degraded %v, want true, false", tt.policy, d.Allowed, d.Degraded)
		}
		want := map[string]int64{"all": 3, "seen": 4}
		if tt.allowed {
			want["all"] = 4
		}
		for name, n := range want {
			if u, _ := e.Usage(t.Context(), name, nil); u.Used != n {
				t.Errorf("%s: %s: got %d, want %d", tt.policy, name, u.Used, n)
			}
		}
	}
}

func BenchmarkTake(b *testing.B) {
	for _, n := range []int{1, 10, 1000, 10_000} {
		b.Run(fmt.Sprintf("engine/rules=%d", n), func(b *testing.B) {
			rules := make([]rule.Rule, n)
			for i := range rules {
				rules[i] = rule.Rule{
					Name: fmt.Sprint("r", i), When: equals("action", fmt.Sprint("a", i)), Per: []string{"user"},
					Quota: &rule.Quota{Value: 1_000_000}, Window: window.Sliding(time.Hour),
				}
			}
			e := engine(b, rules)
			req := weir.Request{Attributes: weir.Attributes("action", "a0", "user", "ann")}
			var d weir.Decision
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Do(context.Background(), store.Take, &req, &d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("engine/rules=3 matching", func(b *testing.B) {
		e := engine(b, []rule.Rule{
			{Name: "r0", When: equals("action", "a0"), Per: []string{"user"}, Quota: &rule.Quota{Value: 1_000_000}, Window: window.Sliding(time.Hour)},
			{Name: "r1", When: equals("action", "a0"), Per: []string{"team"}, Quota: &rule.Quota{Value: 1_000_000}, Window: window.Sliding(time.Minute)},
			{Name: "r2", Per: []string{"user"}, Quota: &rule.Quota{Value: 1_000_000}, Window: window.Sliding(time.Second)},
		})
		req := weir.Request{Attributes: weir.Attributes("action", "a0", "user", "ann", "team", "red")}
		var d weir.Decision
		b.ReportAllocs()
		for b.Loop() {
			if err := e.Do(context.Background(), store.Take, &req, &d); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("limiter", func(b *testing.B) {
		m := weir.MustLimiter(weir.Sliding(1_000_000, time.Hour))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Allow(context.Background(), "ann"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
