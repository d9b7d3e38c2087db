package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/store/memstore"
)

// tenants is an API with the namespaces default, a and b. All have the same rules,
// and count in one store. There is a token for each, called like it, and one for
// all, called ops.
type tenants struct{ api *httpapi.API }

func newTenants(t *testing.T) *tenants {
	t.Helper()
	counts := memstore.New()
	t.Cleanup(func() { counts.Close() })
	rules := scripttest.Rules(t, `rules:
  - {name: posts, when: {action: post}, per: [user], limit: 5, window: 1h}
  - {name: places, when: {action: export}, per: [user], limit: 5, window: {held: 1h}}
`)
	own := []access.Own{{Name: "ops", Token: "ops", Scopes: access.All}}
	var all []*namespace.Namespace
	lines := ""
	for _, name := range []string{"default", "a", "b"} {
		e := scripttest.Engine(t, rules, weir.WithStore(counts), weir.WithNamespace(name))
		all = append(all, namespace.New(name, e, 0, nil))
		lines += access.Line(name, name, access.All, name) + "\n"
	}
	keys := scripttest.Keys(t, tokensFile(t, lines), own...)
	auth := &access.Authenticator{Keys: keys, Reach: access.ReachNamed}
	return &tenants{httpapi.New(namespace.NewSet(all...), httpapi.Config{Auth: auth})}
}

// call makes a call. It returns the status and the body.
func (s *tenants) call(token, method, path, header, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	if header != "" {
		r.Header.Set(namespace.Header, header)
	}
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// used returns how many hits of posts a namespace has for the user ann.
func (s *tenants) used(t *testing.T, name string) string {
	t.Helper()
	status, body := s.call("ops", "GET", "/ns/"+name+"/v1/usage?rule=posts&user=ann", "", "")
	m := usedHits.FindStringSubmatch(body)
	if status != http.StatusOK || m == nil {
		t.Fatalf("got %d %s, want numbers", status, body)
	}
	return m[1]
}

var usedHits = regexp.MustCompile(`"used":(\d+)`)

const annPosts = `{"attributes":{"action":"post","user":"ann"}}`

// The path, the header and the token lead to a namespace. Its counters are its own.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	for _, tc := range []struct {
		token, path, header string
		status              int
		in                  string // what is counted where, or a part of the problem
	}{
		{"ops", "/v1/take", "", 200, "default 1 a 0 b 0"},
		{"ops", "/v1/take", "default", 200, "default 2 a 0 b 0"},
		{"ops", "/ns/default/v1/take", "", 200, "default 3 a 0 b 0"},
		{"ops", "/ns/a/v1/take", "", 200, "default 3 a 1 b 0"},
		{"ops", "/v1/take", "a", 200, "default 3 a 2 b 0"},
		{"ops", "/ns/a/v1/take", "a", 200, "default 3 a 3 b 0"},
		{"ops", "/ns/%61/v1/take", "", 200, "default 3 a 4 b 0"},
		{"b", "/v1/take", "", 200, "default 3 a 4 b 1"},
		{"b", "/ns/b/v1/take", "", 200, "default 3 a 4 b 2"},
		{"b", "/v1/take", "b", 200, "default 3 a 4 b 3"},
		{"default", "/v1/take", "", 200, "default 4 a 4 b 3"},

		{"a", "/ns/b/v1/take", "", 403, "a may use the namespace a only"},
		{"a", "/v1/take", "b", 403, "a may use the namespace a only"},
		{"a", "/v1/take", "default", 403, "a may use the namespace a only"},
		{"a", "/ns/none/v1/take", "", 403, "a may use the namespace a only"},
		{"a", "/ns/a/v1/take", "b", 400, "the path names the namespace a"},
		{"a", "/ns/a/ns/b/v1/take", "", 404, "no such path"},
		{"a", "/ns/a/../b/v1/take", "", 404, "no such path"},
		{"a", "/ns/a/%2e%2e/b/v1/take", "", 404, "no such path"},
		{"a", "/ns/../v1/take", "", 400, "want up to 64 letters"},
		{"a", "/ns//v1/take", "", 400, "want up to 64 letters"},
		{"default", "/ns/a/v1/take", "", 403, "default may use the namespace default only"},
		{"ops", "/ns/none/v1/take", "", 404, `namespace \"none\": not found`},
		{"ops", "/v1/take", "a,b", 400, "want up to 64 letters"},
		{"ops", "/v1/take", "", 200, "default 5 a 4 b 3"},
	} {
		status, body := s.call(tc.token, "POST", tc.path, tc.header, annPosts)
		got := body
		if status == http.StatusOK {
			got = "default " + s.used(t, "default") + " a " + s.used(t, "a") + " b " + s.used(t, "b")
		}
		if status != tc.status || !strings.Contains(got, tc.in) {
			t.Errorf("%s %s %q: got %d %s, want %d %s", tc.token, tc.path, tc.header, status, got, tc.status, tc.in)
		}
	}
}

// No call with the token of one namespace reads or changes another one.
func TestNamespacesAreApart(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	for range 3 {
		s.call("b", "POST", "/v1/take", "", annPosts)
	}
	for call := range s.api.Calls() {
		method, path, ok := strings.Cut(call, " ")
		if !ok {
			method, path = http.MethodGet, call
		}
		body := annPosts
		switch {
		case strings.HasSuffix(path, "/batch"):
			body = `{"requests":[` + annPosts + `,{"verb":"record","attributes":{"action":"post","user":"ann"}}]}`
		case strings.HasSuffix(path, "/gate"):
			path += "?action=post&user=ann"
		case strings.HasSuffix(path, "/usage"):
			path += "?rule=posts&user=ann"
		}
		status, answer := s.call("a", method, "/ns/b"+path, "", body)
		if status != http.StatusForbidden {
			t.Errorf("%s: got %d %s in the path of another namespace, want 403", call, status, answer)
		}
		if strings.HasPrefix(path, "/v1/gate") {
			continue // see TestGateNamespace
		}
		if status, answer := s.call("a", method, path, "b", body); status != http.StatusForbidden {
			t.Errorf("%s: got %d %s with the header of another namespace, want 403", call, status, answer)
		}
	}
	if got := s.used(t, "b"); got != "3" {
		t.Errorf("got %s hits, want the three of before", got)
	}
}

// The URL of a gate names its namespace, or its token does. A client of the proxy,
// whose headers are forwarded, cannot choose another one.
func TestGateNamespace(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	for _, tc := range []struct{ token, path, header, want string }{
		{"ops", "/v1/gate", "a", "default 1 a 0 b 0"},
		{"ops", "/v1/gate", "../x", "default 2 a 0 b 0"},
		{"ops", "/ns/b/v1/gate", "a", "default 2 a 0 b 1"},
		{"a", "/v1/gate", "b", "default 2 a 1 b 1"},
	} {
		if status, body := s.call(tc.token, "GET", tc.path+"?action=post&user=ann", tc.header, ""); status != http.StatusOK {
			t.Errorf("%s: got %d %s", tc.path, status, body)
		}
		if got := "default " + s.used(t, "default") + " a " + s.used(t, "a") + " b " + s.used(t, "b"); got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.token, tc.path, got, tc.want)
		}
	}
}

// A receipt of one namespace ends nothing in another one, where the same user holds
// a place under a rule of the same name.
func TestReceiptsOfNamespaces(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	const export = `"attributes":{"action":"export","user":"ann"}}`
	_, body := s.call("b", "POST", "/v1/take", "", "{"+export)
	m := receipts.FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("got %s, want a receipt", body)
	}
	s.call("a", "POST", "/v1/take", "", "{"+export)
	with := `{"receipt":"` + m[1] + `",` + export
	for _, verb := range []string{"renew", "settle", "cancel"} {
		if status, body := s.call("a", "POST", "/v1/"+verb, "", with); status != 200 || !strings.Contains(body, `"used":1`) || !strings.Contains(body, `"held":false`) {
			t.Errorf("%s of another namespace: got %d %s, want one place used and none found", verb, status, body)
		}
	}
	for _, name := range []string{"a", "b"} {
		if _, body := s.call(name, "GET", "/v1/usage?rule=places&user=ann", "", ""); !strings.Contains(body, `"used":1`) {
			t.Errorf("%s: got %s, want the place", name, body)
		}
	}
	if _, body := s.call("b", "POST", "/v1/settle", "", with); !strings.Contains(body, `"held":true`) {
		t.Errorf("got %s, want the place of the namespace found", body)
	}
}
