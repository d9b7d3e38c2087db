package rule_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// TestNoAllocations: what a request runs through allocates nothing.
func TestNoAllocations(t *testing.T) {
	block, err := rule.Address("10.0.0.0/8", "10.*.0.*")
	if err != nil {
		t.Fatal(err)
	}
	digits, err := rule.Pattern("^[0-9]+$")
	if err != nil {
		t.Fatal(err)
	}
	when := func(attribute string, test rule.Test) []rule.Condition {
		return []rule.Condition{{Attribute: attribute, Test: test, Trim: true}}
	}
	set, err := rule.New([]rule.Rule{
		{Name: "address", When: when("ip", block), Per: []string{"ip", "user"}, Window: window.Sliding(time.Hour)},
		{Name: "peers", When: when("user", digits), Measure: window.Distinct, Of: "peer", Trigger: 5, Window: window.Sliding(time.Hour)},
		{Name: "spend", When: when("action", rule.Equal("buy")), Per: []string{"user"}, Measure: window.Sum, Of: "cents",
			Quota: &rule.Quota{By: "plan", Cases: map[string]int64{"free": 5}}, Window: window.Sliding(time.Hour)},
		{Name: "calls", Quota: &rule.Quota{Of: "cents", Most: 100}, Window: window.Sliding(time.Hour)},
		{Name: "large", When: when("cents", rule.Within(rule.Range{})), Then: rule.Deny},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	values := vector(set, map[string]string{"ip": "10.1.2.3", "user": " 42 ", "action": "buy", "cents": "12", "plan": "free", "peer": "7"})
	var limits ruleset.Limits
	dst, key := make([]int, 0, set.Len()), make([]byte, 0, 64)
	allocs := testing.AllocsPerRun(100, func() {
		dst = set.Compiled().Match(values, dst[:0], false)
		for _, i := range dst {
			key = set.Compiled().AppendKey(key[:0], i, values)
			if _, err := set.Compiled().LimitOf(i, values, &limits); err != nil {
				t.Fatal(err)
			}
		}
		set.Compiled().ReadableKey(2, values)
		set.Compiled().Member(1, values)
		if n, err := set.Compiled().Sum(2, values); n != 12 || err != nil {
			t.Fatalf("got %d, %v, want 12", n, err)
		}
	})
	if len(dst) != 5 || allocs != 0 {
		t.Errorf("got %v allocations for %d rules, want 0 for 5", allocs, len(dst))
	}
}

func vector(set *rule.Set, request map[string]string) []string {
	values := make([]string, len(set.Attributes()))
	for i, name := range set.Attributes() {
		values[i] = request[name]
	}
	return values
}
