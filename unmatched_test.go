package weir_test

import (
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// TestUnmatched decides requests that no rule matches by the outcome of the
// rules.
func TestUnmatched(t *testing.T) {
	t.Parallel()
	posts := rule.Rule{
		Name: "posts", When: equals("action", "post"),
		Quota: &rule.Quota{Value: 1}, Window: window.Sliding(1e9),
	}
	trial := posts
	trial.Name, trial.Mode = "trial", rule.Shadow
	trial.When = equals("action", "vote")
	set, err := rule.New([]rule.Rule{posts, trial}, map[string]rule.Outcome{"closed": {Status: 403}, "guest": {Allow: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.WithUnmatched("open"); err == nil {
		t.Error("got no error, want one about an unknown outcome")
	}
	for _, tc := range []struct {
		unmatched, action string
		verb              store.Verb
		allowed           bool
		outcome           string
		none              bool // no rule matched
	}{
		{"", "read", store.Take, true, "allow", true},
		{"allow", "read", store.Check, true, "allow", true},
		{"deny", "read", store.Take, false, "deny", true},
		{"closed", "read", store.Check, false, "closed", true},
		{"guest", "read", store.Take, true, "guest", true},
		{"deny", "read", store.Record, true, "allow", true},
		{"deny", "read", store.Refund, true, "allow", true},
		{"deny", "post", store.Take, true, "allow", false},
		{"deny", "vote", store.Take, true, "allow", false}, // a rule in shadow mode matches
	} {
		rules, err := set.WithUnmatched(tc.unmatched)
		if err != nil {
			t.Fatal(err)
		}
		engine := engineOf(t, rules)
		var d weir.Decision
		r := weir.Request{Attributes: weir.Attributes("action", tc.action)}
		if err := engine.Do(t.Context(), tc.verb, &r, &d); err != nil {
			t.Fatal(err)
		}
		if d.Allowed != tc.allowed || d.Outcome != tc.outcome || d.Unmatched != tc.none || d.Rule != "" {
			t.Errorf("%+v: got allowed %v, outcome %s, unmatched %v, rule %q", tc, d.Allowed, d.Outcome, d.Unmatched, d.Rule)
		}
		if (d.RetryAfter == window.Never) == d.Allowed {
			t.Errorf("%+v: got retry after %v, want never exactly if denied", tc, d.RetryAfter)
		}
	}
}
