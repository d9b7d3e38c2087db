package weir_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// overrideOf returns a change that gives a key a limit.
func overrideOf(name string, limit override.Limit, attributes []string, values ...string) override.Change {
	return override.Change{Rule: name, Attributes: attributes, Key: string(ruleset.AppendKey(nil, values...)), Limit: limit}
}

func overrideRules(t testing.TB) *rule.Set {
	t.Helper()
	return compile(t, []rule.Rule{
		{Name: "calls", Per: []string{"customer"}, Quota: &rule.Quota{Value: 2}, Window: window.Fixed(time.Hour)},
		{Name: "pairs", Per: []string{"user", "page"}, Quota: &rule.Quota{Value: 1}, Window: window.Fixed(time.Hour)},
		{Name: "bucket", Per: []string{"ip"}, Networks: map[string]rule.Network{"ip": {V4: 24}}, Quota: &rule.Quota{Value: 10}, Window: window.Bucket(time.Hour, 3)},
		{Name: "plans", Per: []string{"team"}, Quota: &rule.Quota{By: "plan", Cases: map[string]int64{"free": 1}}, Window: window.Sliding(time.Hour)},
	})
}

// The most specific override of a key takes the place of the rule's limit, and the counts stay.
func TestOverride(t *testing.T) {
	t.Parallel()
	e := engineOf(t, overrideRules(t))
	admitted := func(attributes ...string) (n int) {
		t.Helper()
		for n < 1000 {
			d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes(attributes...)})
			if err != nil {
				t.Fatal(err)
			}
			if !d.Allowed {
				break
			}
			n++
		}
		return n
	}
	want := func(want int, attributes ...string) {
		t.Helper()
		if got := admitted(attributes...); got != want {
			t.Errorf("%v: got %d admitted, want %d", attributes, got, want)
		}
	}
	want(2, "customer", "acme")
	var set *override.Set
	set = set.With([]override.Change{
		overrideOf("calls", override.Limit{Quota: 5}, []string{"customer"}, "acme"),
		overrideOf("calls", override.Limit{}, []string{"customer"}, "evil"),
		overrideOf("pairs", override.Limit{Quota: 3}, []string{"user"}, "ann"),
		overrideOf("pairs", override.Limit{Quota: 4}, []string{"page", "user"}, "home", "ann"),
		overrideOf("bucket", override.Limit{Quota: 10, Burst: 7}, []string{"ip"}, "10.0.0.0/24"),
		overrideOf("plans", override.Limit{Quota: 6}, []string{"team"}, "red"),
		overrideOf("plans", override.Limit{Quota: 6}, []string{"no such attribute"}, "red"),
		overrideOf("no such rule", override.Limit{Quota: 6}, []string{"team"}, "red"),
	})
	e.Override(set)
	want(3, "customer", "acme") // which has used 2
	want(0, "customer", "evil")
	want(2, "customer", "other")
	want(3, "user", "ann", "page", "about")
	want(4, "user", "ann", "page", "home")
	want(1, "user", "bob", "page", "home")
	want(7, "ip", "10.0.0.9")
	want(3, "ip", "10.0.1.9")
	want(6, "team", "red", "plan", "free")
	want(1, "team", "blue", "plan", "free")

	u, err := e.Usage(t.Context(), "calls", weir.Attributes("customer", "acme"))
	if err != nil || u.Quota != 5 || u.Used != 5 || !u.Overridden {
		t.Errorf("got %+v, %v, want 5 of 5 by an override", u, err)
	}
	if u, err = e.Usage(t.Context(), "calls", weir.Attributes("customer", "other")); err != nil || u.Quota != 2 || u.Overridden {
		t.Errorf("got %+v, %v, want the rule's quota", u, err)
	}
	if u, err = e.Usage(t.Context(), "plans", weir.Attributes("team", "red")); err != nil || u.Quota != 6 {
		t.Errorf("got %+v, %v, want 6 whatever the plan", u, err)
	}
	d, why, err := e.Explain(t.Context(), weir.Request{Attributes: weir.Attributes("customer", "acme")})
	if err != nil || d.Allowed || !d.Usages[0].Overridden || !why[0].Usage.Overridden {
		t.Errorf("got %+v, %+v, %v, want a denial by an override", d, why, err)
	}

	if err := e.SetRules(overrideRules(t)); err != nil {
		t.Fatal(err)
	}
	if u, _ = e.Usage(t.Context(), "calls", weir.Attributes("customer", "acme")); u.Quota != 5 {
		t.Errorf("after a reload: got %+v, want 5", u)
	}
	c := overrideOf("calls", override.Limit{}, []string{"customer"}, "acme")
	c.Remove = true
	e.Override(set.With([]override.Change{c}))
	if u, _ = e.Usage(t.Context(), "calls", weir.Attributes("customer", "acme")); u.Quota != 2 || u.Used != 5 || u.Overridden {
		t.Errorf("after its removal: got %+v, want 5 of 2", u)
	}
	e.Override(nil)
	want(0, "customer", "acme")
	want(2, "customer", "evil")
}

// In a sliding window that met both quotas, no more than the larger one is admitted.
func TestOverrideEndsInSlidingWindow(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{{Name: "calls", Per: []string{"c"}, Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour)}})
	var none *override.Set
	raised := none.With([]override.Change{overrideOf("calls", override.Limit{Quota: 500}, []string{"c"}, "x")})
	admitted := 0
	for turn := range 6 {
		if e.Override(none); turn%2 == 0 {
			e.Override(raised)
		}
		for range 150 {
			d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("c", "x")})
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				admitted++
			}
		}
	}
	if admitted < 445 || admitted > 500 {
		t.Errorf("got %d admitted, want 446 to 500", admitted)
	}
}

// BenchmarkOverride reports what overrides add to a decision in memory, as ratios of the shortest of many short
// turns: with one, with 100,000, and where only another rule has some.
func BenchmarkOverride(b *testing.B) {
	limit := func(name string) rule.Rule {
		return rule.Rule{Name: name, Per: []string{"c"}, Quota: &rule.Quota{Value: 1 << 40}, Window: window.Fixed(time.Hour), When: []rule.Condition{{Attribute: "rule", Test: rule.Equal(name)}}}
	}
	set := compile(b, []rule.Rule{limit("calls"), limit("other")})
	kinds := []struct {
		name, rule string
		n          int
	}{{"none", "calls", 0}, {"one", "calls", 1}, {"many", "calls", 100_000}, {"other", "other", 1000}}
	engines, shortest := make([]*weir.Engine, len(kinds)), make([]time.Duration, len(kinds))
	for i, k := range kinds {
		engines[i] = engineOf(b, set)
		var changes []override.Change
		for n := range k.n {
			changes = append(changes, overrideOf(k.rule, override.Limit{Quota: 1<<40 + int64(n%100)}, []string{"c"}, fmt.Sprint("customer-", n)))
		}
		var none *override.Set
		engines[i].Override(none.With(changes))
	}
	r := weir.Request{Attributes: weir.Attributes("c", "customer-0", "rule", "calls")}
	var d weir.Decision
	const calls = 1000
	for b.Loop() {
		for i, e := range engines {
			began := time.Now()
			for range calls {
				if err := e.Do(b.Context(), store.Take, &r, &d); err != nil || !d.Allowed {
					b.Fatal(err)
				}
			}
			if took := time.Since(began); shortest[i] == 0 || took < shortest[i] {
				shortest[i] = took
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(shortest[0].Nanoseconds())/calls, "ns/none")
	for i, k := range kinds[1:] {
		b.ReportMetric(float64(shortest[i+1])/float64(shortest[0]), "x/"+k.name)
	}
}
