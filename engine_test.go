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
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/store"
)

func rules(tb testing.TB, src string) *rule.Set {
	tb.Helper()
	f, err := rulefile.Parse("rules.yaml", []byte(src), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return f.Set
}

func engine(tb testing.TB, src string, options ...weir.EngineOption) *weir.Engine {
	tb.Helper()
	e, err := weir.NewEngine(rules(tb, src), options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	return e
}

const twoRules = `
rules:
  - {name: per-user, when: {action: post}, per: [user], limit: 1000, window: 1h}
  - {name: per-team, when: {action: post}, per: [team], limit: 1500, window: 1h}
  - {name: seen, window: 1h}
`

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
	e := engine(t, "rules: [{name: posts, per: [user], limit: 1000, window: 1h}]")
	other := rules(t, "rules: [{name: gone, window: 1h}, {name: posts, per: [user], limit: 1000, window: 1h, then: deny}]")
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
	e := engine(t, `
rules:
  - {name: seen, window: 1h}
  - {name: tokens, sum: tokens, limit: 10, window: 1h}
`)
	for _, tt := range []struct {
		req   weir.Request
		field string
	}{
		{weir.Request{Hits: -2}, "hits"},
		{weir.Request{Attributes: weir.Attributes("tokens", "many")}, "attributes.tokens"},
		{weir.Request{Attributes: weir.Attributes("tokens", "9007199254740992")}, "attributes.tokens"},
	} {
		_, err := e.Take(t.Context(), tt.req)
		var bad *fault.Fault
		if !errors.As(err, &bad) || bad.Path != tt.field {
			t.Errorf("%+v: got %v, want an fault for %s", tt.req, err, tt.field)
		}
	}
	var bad *fault.Fault
	if err := e.Do(t.Context(), weir.Renew+1, &weir.Request{}, new(weir.Decision)); !errors.As(err, &bad) || bad.Path != "verb" {
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
		policy  string
		allowed bool
	}{{"allow", true}, {"deny", false}, {"local", false}} {
		e := engine(t, `
rules:
  - {name: all, limit: 100, window: 1h}
  - {name: each, per: [user], limit: 5, window: 1h, max_keys: 2, on_outage: `+tt.policy+`}
  - {name: seen, window: 1h}
`)
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
			src := "rules:\n"
			for i := range n {
				src += fmt.Sprintf("  - {name: r%d, when: {action: a%d}, per: [user], limit: 1000000, window: 1h}\n", i, i)
			}
			e := engine(b, src)
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
		e := engine(b, `rules:
  - {name: r0, when: {action: a0}, per: [user], limit: 1000000, window: 1h}
  - {name: r1, when: {action: a0}, per: [team], limit: 1000000, window: 1m}
  - {name: r2, per: [user], limit: 1000000, window: 1s}`)
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
	b.Run("reference/clock+map+mutex", func(b *testing.B) {
		var mu sync.Mutex
		counts := map[string]int64{"ann": 0}
		b.ReportAllocs()
		for b.Loop() {
			now := time.Now().UnixMicro()
			mu.Lock()
			counts["ann"] += now & 1
			mu.Unlock()
		}
	})
}
