package headers_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/rulefile"
)

// The type of a denial says why: a limit, a ban, a verdict, or no rule.
func TestDenial(t *testing.T) {
	t.Parallel()
	file, err := rulefile.Parse("rules.yaml", []byte(`
unmatched: deny
rules:
  - {name: shadow, when: {action: post}, per: [user], limit: 0, window: 1m, mode: shadow}
  - {name: blocked, when: {user: eve}, then: deny}
  - {name: day, when: {action: post}, per: [user], limit: 1, window: 24h}
  - {name: minute, when: {action: post}, per: [user], limit: 1, window: 1m}
  - {name: logins, when: {action: login}, per: [user], limit: 1, window: 1m, ban: {for: 1h}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := weir.NewEngine(file.Set)
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
