package weir_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/weirtest"
	"github.com/weirhq/weir/window"
)

// TestFirstAnswerStays has other rules when a take comes again. Its first answer stays, also if what denied it is gone, or
// what would deny it now is new. Denials have counted something: others keep no answer.
func TestFirstAnswerStays(t *testing.T) {
	t.Parallel()
	when := func(user string) []rule.Condition {
		return []rule.Condition{{Attribute: "user", Test: rule.Equal(user)}}
	}
	full := rule.Rule{Name: "full", Per: []string{"user"}, Quota: &rule.Quota{}, Window: window.Sliding(time.Hour)}
	wide := rule.Rule{Name: "wide", Per: []string{"user"}, Quota: &rule.Quota{Value: 9}, Window: window.Sliding(time.Hour)}
	shadow, blocked := full, rule.Rule{Name: "blocked", When: when("ann"), Then: rule.Deny}
	shadow.Mode = rule.Shadow
	rest := rule.Rule{Name: "fine", Then: rule.Allow, CountRest: true}
	seen, before := rule.Rule{Name: "seen", Window: window.Sliding(time.Hour)}, rule.Rule{Name: "before", Window: window.Sliding(time.Hour)}
	other := rule.Rule{Name: "other", When: when("bob"), Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)}
	for name, test := range map[string]struct {
		first, then []rule.Rule
		allowed     bool
	}{
		"a limit is gone":                       {[]rule.Rule{full, wide, seen}, []rule.Rule{wide, seen}, false},
		"a limit is a shadow now":               {[]rule.Rule{full, wide, seen}, []rule.Rule{shadow, wide}, false},
		"a verdict is gone":                     {[]rule.Rule{wide, blocked}, []rule.Rule{wide}, false},
		"a verdict after a counter is gone":     {[]rule.Rule{seen, blocked}, []rule.Rule{seen}, false},
		"all limits are gone":                   {[]rule.Rule{full, wide, before}, []rule.Rule{seen}, false},
		"no rule matches":                       {[]rule.Rule{full, wide, before}, []rule.Rule{other}, false},
		"a limit before a verdict is gone":      {[]rule.Rule{full, wide, before, rest, seen}, []rule.Rule{wide, rest, seen}, false},
		"a limit is new":                        {[]rule.Rule{wide}, []rule.Rule{full, wide}, true},
		"a shadow is enforced":                  {[]rule.Rule{shadow, wide}, []rule.Rule{full, wide}, true},
		"a verdict is new":                      {[]rule.Rule{wide}, []rule.Rule{wide, blocked}, true},
		"a limit before an outcome, now denies": {[]rule.Rule{shadow, wide, rest}, []rule.Rule{full, wide, rest}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sets := make([]*rule.Set, 2)
			for i, rules := range [][]rule.Rule{test.first, test.then} {
				set := compile(t, rules)
				sets[i] = set
			}
			s := weirtest.NewStore()
			e := engineOf(t, sets[0], weir.WithStore(s))
			take := func(key string) weir.Decision {
				d, err := e.Take(t.Context(), onceRequest(key, "ann"))
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			first := take("k")
			if first.Allowed != test.allowed {
				t.Fatalf("got %+v, want allowed %v", first, test.allowed)
			}
			if err := e.SetRules(sets[1]); err != nil {
				t.Fatal(err)
			}
			items := []weir.Item{{Verb: store.Take, Request: onceRequest("k", "ann")}, {Verb: store.Take, Request: onceRequest("k", "ann")}}
			e.DoAll(t.Context(), items)
			for i, it := range append(items, weir.Item{Decision: take("k")}) {
				d := it.Decision
				if it.Err != nil || d.Allowed != test.allowed || !d.Replayed || d.Unmatched {
					t.Errorf("again, %d: got %+v, error %v, want allowed %v", i, d, it.Err, test.allowed)
				}
				if d.RetryAfter != first.RetryAfter || (d.Outcome == rule.Allow) != test.allowed {
					t.Errorf("again, %d: got %s, to wait %v, want what the first answer said: %v", i, d.Outcome, d.RetryAfter, first.RetryAfter)
				}
			}
			if test.allowed {
				return
			}
			for _, rule := range []string{"full", "wide"} {
				if n := s.Taken(rule, "ann"); n != 0 {
					t.Errorf("%s has counted %d hits of a denial", rule, n)
				}
			}
		})
	}
}

// TestDenialInOutageStays is a denial by the local memory, again, without the rule that denied it.
func TestDenialInOutageStays(t *testing.T) {
	t.Parallel()
	full := rule.Rule{Name: "full", Quota: &rule.Quota{}, Window: window.Sliding(time.Hour)}
	wide := rule.Rule{Name: "wide", Quota: &rule.Quota{Value: 9}, Window: window.Sliding(time.Hour)}
	seen := rule.Rule{Name: "seen", Window: window.Sliding(time.Hour)}
	with := compile(t, []rule.Rule{full, wide, seen})
	without := compile(t, []rule.Rule{wide})
	s := weirtest.NewStore()
	e := engineOf(t, with, weir.WithStore(s), weir.WithLocal(memstore.New(), 1))
	s.Fail(store.ErrClosed)
	for i := range 2 {
		if d, err := e.Take(t.Context(), onceRequest("k", "ann")); err != nil || d.Allowed || d.Replayed != (i > 0) {
			t.Errorf("take %d: got %+v, error %v, want a denial", i, d, err)
		}
		if err := e.SetRules(without); err != nil {
			t.Fatal(err)
		}
	}
}
