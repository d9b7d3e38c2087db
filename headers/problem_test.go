package headers_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/rule"
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
		w := httptest.NewRecorder()
		headers.Denial(&d, 0).Write(w)
		if got, want := w.Body.String(), "{"+tc.want+"}\n"; got != want || w.Code != 429 || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %v\n%s, want\n%s", tc.attributes, w.Code, w.Header(), got, want)
		}
	}
}
