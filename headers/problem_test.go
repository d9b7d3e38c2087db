package headers_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/guardtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/weirtest"
	"github.com/weirhq/weir/window"
)

// The type of a denial says why: a limit, a ban, a verdict, or no rule.
func TestDenial(t *testing.T) {
	t.Parallel()
	equals := func(attribute, value string) []rule.Condition {
		return []rule.Condition{{Attribute: attribute, Test: rule.Equal(value)}}
	}
	set, err := rule.New([]rule.Rule{
		{Name: "shadow", When: equals("action", "post"), Per: []string{"user"}, Quota: &rule.Quota{Value: 0}, Window: window.Sliding(time.Minute), Mode: rule.Shadow},
		{Name: "blocked", When: equals("user", "eve"), Then: rule.Deny},
		{Name: "day", When: equals("action", "post"), Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(24 * time.Hour)},
		{Name: "minute", When: equals("action", "post"), Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute)},
		{Name: "hour", When: equals("action", "post"), Per: []string{"user"}, Quota: &rule.Quota{Value: 9}, Window: window.Sliding(time.Hour)},
		{Name: "logins", When: equals("action", "login"), Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute), Ban: window.Ban{For: time.Hour}},
	}, nil)
	if err == nil {
		set, err = set.WithUnmatched("deny")
	}
	if err != nil {
		t.Fatal(err)
	}
	e, err := weir.NewEngine(set)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const types = "https://iana.org/assignments/http-problem-types#"
	for _, tc := range []struct{ attributes, want string }{
		{"action post user ann", ""},
		{"action post user ann", `"type":"` + types + `quota-exceeded","title":"Too Many Requests","status":429,"detail":"denied by rule day","violated-policies":["day","minute"]`},
		{"action post user eve", `"type":"about:blank","title":"Too Many Requests","status":429,"detail":"denied by rule blocked"`},
		{"action login user ann", ""},
		{"action login user ann", `"type":"` + types + `abnormal-usage-detected","title":"Too Many Requests","status":429,"detail":"denied by rule logins","violated-policies":["logins"]`},
		{"action read", `"type":"about:blank","title":"Too Many Requests","status":429,"detail":"denied: no rule matches the request"`},
	} {
		d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes(strings.Fields(tc.attributes)...)})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed != (tc.want == "") {
			t.Fatalf("%s: got allowed %v", tc.attributes, d.Allowed)
		}
		if d.Allowed {
			continue
		}
		for _, d.Rules = range []*rule.Set{set, nil} { // the rules of a client are not known
			w := httptest.NewRecorder()
			headers.Denial(&d, 0).Write(w)
			if got, want := w.Body.String(), "{"+tc.want+"}\n"; got != want || w.Code != 429 || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: got %d %v\n%s, want\n%s", tc.attributes, w.Code, w.Header(), got, want)
			}
		}
	}
}

// In an outage the policy of a limit denies, whatever other rules match.
func TestDenialInOutage(t *testing.T) {
	t.Parallel()
	rules := []rule.Rule{
		{Name: "minute", Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute), OnOutage: rule.OutageDeny},
		{Name: "friends", When: []rule.Condition{{Attribute: "user", Test: rule.Equal("ann")}}, Then: rule.Allow},
	}
	s := weirtest.NewStore()
	s.Fail(errors.New("down"))
	e := guardtest.Engine(t, rules, nil, weir.WithStore(s))
	for _, user := range []string{"ann", "bob"} {
		d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", user)})
		if p := headers.Denial(&d, 0); err != nil || !strings.HasSuffix(p.Type, "#temporary-reduced-capacity") || !slices.Equal(p.Policies, []string{"minute"}) {
			t.Errorf("%s: got %+v and error %v, want a denial by the policy of minute", user, p, err)
		}
	}
}

// Limits are those that could decide: not in shadow mode, not after a verdict.
func TestSetDecision(t *testing.T) {
	t.Parallel()
	e := guardtest.Engine(t, []rule.Rule{
		{Name: "shadow", Quota: &rule.Quota{Value: 9}, Window: window.Sliding(time.Minute), Mode: rule.Shadow},
		{Name: "running", Quota: &rule.Quota{Value: 9}, Window: window.Held(time.Minute)},
		{Name: "friends", When: []rule.Condition{{Attribute: "user", Test: rule.Equal("ann")}}, Then: rule.Allow, CountRest: true},
		{Name: "ever", Quota: &rule.Quota{Value: 9}, Window: window.Ever()},
		{Name: "hour", Quota: &rule.Quota{Value: 9}, Window: window.Sliding(time.Hour)},
	}, nil)
	var l headers.Limits // is used again
	for _, tc := range []struct{ user, want, ofClient string }{
		{"ann", "[running concurrent-requests 0s]", "[]"},
		{"bob", "[running concurrent-requests 0s ever  0s hour  1h0m0s]", "[running  0s ever  0s hour  0s]"},
	} {
		d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", tc.user)})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{tc.want, tc.ofClient} {
			l.SetDecision(&d)
			var got []string
			for _, p := range l.Policies {
				got = append(got, fmt.Sprint(p.Name, " ", p.Unit, " ", p.Window))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s: got %v, want %s", tc.user, got, want)
			}
			d.Rules = nil
		}
	}
}

// The result of a limiter has a policy unless an outage policy decided without numbers.
func TestSetResult(t *testing.T) {
	t.Parallel()
	limit := weir.Sliding(5, time.Minute)
	for policies, policy := range []rule.Outage{rule.OutageDeny, rule.OutageLocal} {
		s := weirtest.NewStore()
		m := guardtest.Limiter(t, limit, weir.WithStore(s), weir.WithName("posts"), weir.WithOutage(policy))
		l := headers.Limits{Degraded: "of before"}
		set := func(hits int64) int {
			r, err := m.AllowN(t.Context(), "k", hits)
			if err != nil {
				t.Fatal(err)
			}
			l.SetResult("posts", &limit, &r)
			return len(l.Policies)
		}
		if set(5) != 1 || l.Degraded != "" {
			t.Errorf("got %+v, want a policy", l)
		}
		s.Fail(errors.New("down"))
		if n := set(5); n != policies || l.Degraded == "" {
			t.Errorf("got %+v in an outage, want %d policies", l, policies)
		}
	}
}
