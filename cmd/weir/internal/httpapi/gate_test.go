package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/internal/clientaddr"
	"github.com/weirhq/weir/window"
)

// A trusted proxy that does not say who its client is gets an error: its own address would be that of all its clients.
func TestProxyMustNameItsClient(t *testing.T) {
	t.Parallel()
	engine, _ := scripttest.NewEngine(t, "rules: [{name: ips, per: [ip], limit: 1, window: 1h}]", func() window.Instant { return window.At(time.Unix(0, 0)) })
	proxies, err := clientaddr.NewProxies([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	api := httpapi.New(namespace.NewSet(namespace.New(namespace.Default, engine, 0, nil)), httpapi.Config{Proxies: proxies})
	for _, c := range []struct {
		peer   string
		header []string
		want   int
	}{
		{"10.0.0.1:80", nil, http.StatusBadRequest},
		{"10.0.0.1:80", []string{""}, http.StatusBadRequest},
		{"10.0.0.1:80", []string{"1.2.3.4, unknown"}, http.StatusBadRequest},
		{"@", nil, http.StatusBadRequest},
		{"10.0.0.1:80", []string{"unknown, 192.0.2.1"}, http.StatusOK},
		{"10.0.0.1:80", []string{"192.0.2.1, 10.0.0.2"}, http.StatusTooManyRequests},
		{"10.0.0.1:80", []string{"10.0.0.1"}, http.StatusOK}, // a call of the proxy itself
		{"192.0.2.2:80", nil, http.StatusOK},                 // a client, without a proxy
		{"192.0.2.2:80", []string{"9.9.9.9"}, http.StatusTooManyRequests},
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/gate?header.ip=X-Forwarded-For", http.NoBody)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.peer, c.header
		w := httptest.NewRecorder()
		if api.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s, %q: got %d %s, want %d", c.peer, c.header, w.Code, w.Body, c.want)
		}
	}
}

// What the sender of a request can choose denies it, also by a proxy that forwards requests when the gate fails.
func TestRefusedValuesDeny(t *testing.T) {
	t.Parallel()
	engine, _ := scripttest.NewEngine(t, "rules: [{name: sizes, sum: size, per: [path], limit: 10, window: 1h}]", func() window.Instant { return window.At(time.Unix(0, 0)) })
	api := httpapi.New(namespace.Only(engine), httpapi.Config{})
	for _, c := range []struct{ path, size string }{
		{"/" + strings.Repeat("x", 9000), "1"},
		{"/" + strings.Repeat("x\xff", 3000), "1"},
		{"/x%2f..%2fz", "1"},
		{"/x", "abc"},
		{"/x", "-1"},
	} {
		for query, want := range map[string]int{"": http.StatusBadRequest, "&status.deny=403": http.StatusForbidden} {
			r := httptest.NewRequest(http.MethodGet, "/v1/gate?header.path=X-Uri&header.size=Content-Length"+query, http.NoBody)
			r.Header["X-Uri"], r.Header["Content-Length"] = []string{c.path}, []string{c.size}
			w := httptest.NewRecorder()
			if api.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%.20q, size %s, %s: got %d %s, want %d", c.path, c.size, query, w.Code, w.Body, want)
			}
		}
	}
}

// For some servers an escaped slash or a backslash is a slash, for others a part of a segment. Neither evades a rule.
func TestGateReadsSlashes(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{ // used of users, posts and api; empty: refused
		"/api/users/1":         "1 0 1",
		"/api/users/1%2fz":     "1 0 1",
		"/api/users/1%5Cz":     "1 0 1",
		`/api/users/1\z`:       "1 0 1",
		"/api%2fusers%2f1":     "1 0 1",
		`/api\users/1`:         "1 0 1",
		"/api/users/1/posts":   "0 1 1",
		"/api/users%2f1/posts": "0 1 1",
		"/api/users/1%2fposts": "",
		"/api/groups/a%2fb":    "0 0 1",
		"/api/users/1%252fz":   "1 0 1",
		"/%2fapi":              "0 0 0",
		"/api/users/" + strings.Repeat("%5c", 2000): "1 0 1",
		"/api/users/" + strings.Repeat(`\`, 4000):   "",
	} {
		engine, _ := scripttest.NewEngine(t, `
rules:
  - {name: users, when: {path: {match: "^/api/users/[^/]+$"}}, limit: 10, window: 1h}
  - {name: posts, when: {path: {match: "^/api/users/[^/]+/posts$"}}, limit: 10, window: 1h}
  - {name: api, when: {path: {prefix: /api/}}, limit: 10, window: 1h}`, func() window.Instant { return window.At(time.Unix(0, 0)) })
		api := httpapi.New(namespace.Only(engine), httpapi.Config{})
		r, w := httptest.NewRequest(http.MethodGet, "/v1/gate?status.deny=403&header.path=X-Uri", http.NoBody), httptest.NewRecorder()
		r.Header["X-Uri"] = []string{path}
		if api.ServeHTTP(w, r); w.Code == http.StatusForbidden && want == "" {
			continue
		}
		var used []string
		for _, name := range []string{"users", "posts", "api"} {
			u, err := engine.Usage(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			used = append(used, strconv.FormatInt(u.Used, 10))
		}
		if got := strings.Join(used, " "); got != want || w.Code != http.StatusOK {
			t.Errorf("%.30s: got %d %s and %q used, want %q", path, w.Code, w.Body, got, want)
		}
	}
}

// An escaped slash lets nobody pass what another reading of the path denies.
func TestGateReadsSlashesStrictly(t *testing.T) {
	t.Parallel()
	for rules, paths := range map[string]map[string]int{
		"unmatched: deny\nrules: [{name: site, when: {path: {not: {prefix: /internal/}}}, limit: 100, window: 1h}]": {
			"/internal/x": 429, "/internal%2fx": 403, `/internal\x`: 403, "/x%2fy": 200,
		},
		"unmatched: deny\nrules: [{name: health, when: {path: {suffix: /health}}, then: allow}]": {
			"/health": 200, "/x/health": 200, "/admin/1%2fhealth": 403, "/x%2fy/health": 200,
		},
		"rules: [{name: static, when: {path: {match: /static/}}, then: allow, rest: count}, {name: api, when: {path: {prefix: /api/}}, limit: 0, window: 1h}]": {
			"/api/1": 429, "/api/static/x": 200, "/api/1%2fstatic%2fz": 403, "/api%2f1": 429,
		},
		"rules: [{name: secret, when: {path: {prefix: /secret/}}, then: deny}]": {
			"/secret/1": 429, "/secret%2f1": 429, "/open%2f1": 200,
		},
	} {
		engine, _ := scripttest.NewEngine(t, rules, func() window.Instant { return window.At(time.Unix(0, 0)) })
		api := httpapi.New(namespace.Only(engine), httpapi.Config{})
		for path, want := range paths {
			for _, status := range []string{"", "&status.deny=403"} {
				r, w := httptest.NewRequest(http.MethodGet, "/v1/gate?header.path=X-Uri"+status, http.NoBody), httptest.NewRecorder()
				r.Header["X-Uri"] = []string{path}
				api.ServeHTTP(w, r)
				switch {
				case status != "" && want != http.StatusOK:
					want = http.StatusForbidden
				case status == "" && want == http.StatusForbidden:
					want = http.StatusBadRequest
				}
				if w.Code != want {
					t.Errorf("%s: %s%s: got %d %s, want %d", rules, path, status, w.Code, w.Body, want)
				}
			}
		}
	}
}

// A status in the URL of a gate is that of an outcome which allows or denies. Rules that come into force after the URL
// was read can have another one of its name.
func TestGateDuringReload(t *testing.T) {
	t.Parallel()
	allows := scripttest.Rules(t, "outcomes: {maybe: {allow: true}}\nrules: [{name: a, then: maybe}]")
	denies := scripttest.Rules(t, "outcomes: {maybe: {status: 403}}\nrules: [{name: a, then: maybe}]")
	engine := scripttest.Engine(t, allows)
	reload := func() bool { // is called between both
		if err := engine.SetRules(denies); err != nil {
			t.Error(err)
		}
		return false
	}
	api := httpapi.New(namespace.NewSet(namespace.New(namespace.Default, engine, 0, nil)), httpapi.Config{Resources: &access.ResourceLimits{Loading: reload}})
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/gate?status.maybe=204", nil))
	if w.Code != 403 {
		t.Errorf("got %d of an outcome that denies, want 403", w.Code)
	}
}
