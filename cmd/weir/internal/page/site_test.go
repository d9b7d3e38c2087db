package page_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// maxPage is the maximum size of the live page, compressed.
const maxPage = 90 << 10

// TestSize: the page stays small.
func TestSize(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("built/*")
	if err != nil || len(names) < 3 {
		t.Fatalf("got files %v %v, want those of the page", names, err)
	}
	size := 0
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), "report.") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(text)
		_ = w.Close()
		size += b.Len()
	}
	if size > maxPage {
		t.Errorf("got %d bytes, want at most %d", size, maxPage)
	}
}

const adminToken, readToken = "admin-token-0123456789abcdef", "read-token-0123456789abcdef0"

// keysWith returns two tokens: one with all scopes, and one that reads the namespace shop.
func authWith(t *testing.T) *access.Authenticator {
	t.Helper()
	keys := scripttest.Keys(t, "", access.Own{Name: "ops", Token: adminToken, Scopes: access.All}, access.Own{Name: "eye", Token: readToken, Scopes: access.Read})
	return &access.Authenticator{Keys: keys, Reach: access.ReachNamed}
}

// spaces returns the namespace default, with a rule that admits five.
func spaces(t *testing.T, observers ...weir.Option) *namespace.Set {
	t.Helper()
	return namespace.Only(scripttest.Engine(t, limit(t, 5), observers...))
}

// state has no store.
type state struct{ tally []metrics.RuleStats }

func (s state) Store() page.Store          { return page.Store{Location: "memory"} }
func (s state) Tally() []metrics.RuleStats { return s.tally }

// site returns a page with a call that changes something, and one that reads.
func site(t *testing.T, auth *access.Authenticator) *page.Page {
	t.Helper()
	p := page.New(page.Config{Auth: auth, Namespaces: spaces(t), Write: true, Version: "v1", API: "http://api"})
	ok := func(c *page.Caller, w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, c.By.Token+" "+c.Name)
		return err
	}
	p.Handle(http.MethodPut, "/page/change", access.Admin, ok)
	p.Handle(http.MethodPost, "/page/look", access.Read, ok)
	p.Handle(http.MethodGet, "/page/look", access.Read, ok)
	return p
}

// ask makes a call. header has pairs of names and values.
func ask(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// signedIn returns the cookie of a token.
func signedIn(t *testing.T, p http.Handler, token string) string {
	t.Helper()
	w := ask(p, http.MethodPost, "/page/session", `{"token":"`+token+`"}`, "X-Weir-Page", "1")
	if w.Code != http.StatusOK {
		t.Fatalf("got %d %s, want a session", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge != 0 || c.Path != "/" {
		t.Errorf("got cookie %+v, want one that scripts and other pages cannot read, until the browser ends", c)
	}
	return c.Name + "=" + c.Value
}

// TestFiles: the page has its policy, a tag, and is compressed for those who read that.
func TestFiles(t *testing.T) {
	t.Parallel()
	p := site(t, nil)
	w := ask(p, http.MethodGet, "/", "")
	if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'") {
		t.Fatalf("got %d %v", w.Code, w.Header())
	}
	for _, inline := range []string{"<script>", "<style", "style=", "onload="} {
		if strings.Contains(w.Body.String(), inline) {
			t.Errorf("the page has %s, which its policy forbids", inline)
		}
	}
	if w := ask(p, http.MethodGet, "/", "", "If-None-Match", w.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("got %d for the tag, want 304", w.Code)
	}
	zipped := ask(p, http.MethodGet, "/app.js", "", "Accept-Encoding", "gzip")
	r, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	script, err := io.ReadAll(r)
	if plain := ask(p, http.MethodGet, "/app.js", "").Body.String(); err != nil || string(script) != plain {
		t.Errorf("got another script compressed, error %v", err)
	}
	if w := ask(p, http.MethodPost, "/", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /: got %d, want 405", w.Code)
	}
	if p.Has("/report.js") || p.Has("/metrics") || !p.Has("/page/x") {
		t.Error("the page has other paths than its own")
	}
}

// TestSession: a token signs in, its cookie is enough for calls of the page, and a form or another page cannot use it.
func TestSession(t *testing.T) {
	t.Parallel()
	p := site(t, authWith(t))
	if w := ask(p, http.MethodGet, "/page/session", ""); !strings.Contains(w.Body.String(), `"signed_in":false`) || strings.Contains(w.Body.String(), "default") {
		t.Errorf("a stranger: got %s", w.Body)
	}
	cookie := signedIn(t, p, adminToken)
	if w := ask(p, http.MethodGet, "/page/session", "", "Cookie", cookie); !strings.Contains(w.Body.String(), `"name":"ops","scopes":["decide","record","read","override","admin"],"write":true,"namespaces":["default"]`) {
		t.Errorf("signed in: got %s", w.Body)
	}
	for _, c := range []struct {
		name, method, path string
		header             []string
		want               int
	}{
		{"a stranger", "GET", "/page/look", nil, 401},
		{"the page", "PUT", "/page/change", []string{"Cookie", cookie, "X-Weir-Page", "1"}, 200},
		{"a script with a token", "PUT", "/page/change", []string{"Authorization", "Bearer " + adminToken}, 200},
		{"a form", "PUT", "/page/change", []string{"Cookie", cookie}, 403},
		{"a page of another origin", "PUT", "/page/change", []string{"Cookie", cookie, "X-Weir-Page", "1", "Sec-Fetch-Site", "same-site"}, 403},
		{"a read by another origin", "GET", "/page/look", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site"}, 403},
		{"too few scopes", "PUT", "/page/change", []string{"Cookie", signedIn(t, p, readToken), "X-Weir-Page", "1"}, 403},
		{"a wrong cookie", "GET", "/page/look", []string{"Cookie", "weir_token=d3Jvbmc"}, 401},
		{"a cookie that is no text", "GET", "/page/look", []string{"Cookie", "weir_token=!"}, 401},
		{"another token than the cookie's", "GET", "/page/look", []string{"Cookie", cookie, "Authorization", "Bearer wrong"}, 401},
		{"no such call", "GET", "/page/nothing", []string{"Cookie", cookie}, 404},
		{"no such method", "DELETE", "/page/look", []string{"Cookie", cookie, "X-Weir-Page", "1"}, 405},
		{"no such namespace", "GET", "/ns/shop/page/look", []string{"Cookie", cookie}, 404},
		{"a namespace", "GET", "/ns/default/page/look", []string{"Cookie", cookie}, 200},
		{"a form that signs in", "POST", "/page/session", nil, 403},
	} {
		if w := ask(p, c.method, c.path, "", c.header...); w.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", c.name, w.Code, w.Body, c.want)
		}
	}
	for body, want := range map[string]int{
		`{"token":"wrong-token-0123456789abcdef"}`: 401, `{"token":""}`: 400, `{`: 400, `{"token":"a","more":1}`: 400,
		`{"token":"` + strings.Repeat("a", 5000) + `"}`: 413,
	} {
		if w := ask(p, "POST", "/page/session", body, "X-Weir-Page", "1"); w.Code != want {
			t.Errorf("sign in with %.40s: got %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	out := ask(p, "DELETE", "/page/session", "", "Cookie", cookie, "X-Weir-Page", "1")
	if c := out.Result().Cookies(); out.Code != http.StatusNoContent || len(c) != 1 || c[0].MaxAge >= 0 {
		t.Errorf("sign out: got %d %v, want the cookie gone", out.Code, c)
	}
}

// TestWithoutTokens: the page reads, and changes nothing.
func TestWithoutTokens(t *testing.T) {
	t.Parallel()
	p := site(t, nil)
	if w := ask(p, "GET", "/page/session", ""); !strings.Contains(w.Body.String(), `"tokens":false,"signed_in":true`) || !strings.Contains(w.Body.String(), `"write":false`) {
		t.Errorf("got %s", w.Body)
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Authorization")) })
	forward := func(method, path string, header ...string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		p.Forward(api, path, w, r)
		return w.Code
	}
	for _, c := range []struct {
		got, want int
		what      string
	}{
		{ask(p, "POST", "/page/look", "", "X-Weir-Page", "1").Code, 200, "a call that reads"},
		{ask(p, "PUT", "/page/change", "", "X-Weir-Page", "1").Code, 403, "a call that changes"},
		{ask(p, "POST", "/page/session", "{}", "X-Weir-Page", "1").Code, 409, "signing in"},
		{forward("DELETE", "/v1/usage", "X-Weir-Page", "1"), 403, "a call of the API that changes, by the page"},
		{forward("DELETE", "/v1/usage"), 200, "the same by a program, which the API judges"},
		{forward("POST", "/v1/explain", "X-Weir-Page", "1"), 200, "explain"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", c.what, c.got, c.want)
		}
	}
}

// TestForward: the cookie is enough for calls below /v1/, if they come from the page.
func TestForward(t *testing.T) {
	t.Parallel()
	p := site(t, authWith(t))
	cookie := signedIn(t, p, adminToken)
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Authorization")) })
	for _, c := range []struct {
		method, header string
		want           string
	}{
		{"GET", "", "Bearer " + adminToken},
		{"DELETE", "1", "Bearer " + adminToken},
		{"DELETE", "", "not come from weir's page"},
	} {
		r := httptest.NewRequest(c.method, "/v1/usage", nil)
		r.Header.Set("Cookie", cookie)
		r.Header.Set("X-Weir-Page", c.header)
		w := httptest.NewRecorder()
		p.Forward(api, "/v1/usage", w, r)
		if !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %q: got %d %s, want %q", c.method, c.header, w.Code, w.Body, c.want)
		}
	}
}
