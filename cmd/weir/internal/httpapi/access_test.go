package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/window"
)

// scopes lists the scopes of every call. A call that is missing here fails
// TestScopes.
var scopes = map[string]access.Scope{
	"POST /v1/take":        access.Decide,
	"POST /v1/check":       access.Decide,
	"/v1/gate":             access.Decide,
	"POST /v1/settle":      access.Decide,
	"POST /v1/cancel":      access.Decide,
	"POST /v1/renew":       access.Decide,
	"POST /v1/record":      access.Record,
	"POST /v1/refund":      access.Record,
	"POST /v1/batch":       access.None, // each request needs the scope of its verb
	"POST /v1/explain":     access.Read,
	"GET /v1/usage":        access.Read,
	"GET /v1/rules":        access.Read,
	"GET /v1/top":          access.Read,
	"GET /v1/denials":      access.Read,
	"GET /v1/overrides":    access.Read,
	"PUT /v1/overrides":    access.Override,
	"DELETE /v1/overrides": access.Override,
	"GET /v1/events":       access.Read,
	"GET /v1/audit":        access.Admin,
	"POST /v1/set":         access.Admin,
	"POST /v1/unban":       access.Admin,
	"DELETE /v1/usage":     access.Admin,
	"GET /v1/export":       access.Read,

	"GET /v1/openapi.yaml": access.None,
}

// newKeys returns a token for each scope, called like the scope.
func newKeys(t *testing.T) *access.Keys {
	t.Helper()
	var own []access.Own
	for _, name := range access.ScopeNames() {
		scope, err := access.ParseScopes(name)
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, access.Own{Name: name, Token: name, Scopes: scope})
	}
	return scripttest.Keys(t, "", own...)
}

// locked returns an API with one token for each scope, called like the scope.
func locked(t *testing.T) *httpapi.API {
	t.Helper()
	engine, _ := scripttest.NewEngine(t, posts, func() window.Instant { return window.At(scripttest.Start) })
	keys := newKeys(t)
	return httpapi.New(namespace.Only(engine), httpapi.Config{Auth: &access.Authenticator{Keys: keys}})
}

// TestScopes makes every call with every token, and without one.
func TestScopes(t *testing.T) {
	t.Parallel()
	api := locked(t)
	calls := api.Calls()
	for call := range scopes {
		if _, ok := calls[call]; !ok {
			t.Errorf("%s: in the list of scopes, and no call", call)
		}
	}
	for call, need := range calls {
		if want, ok := scopes[call]; !ok || need != want {
			t.Errorf("%s: got scopes %q, want %q, in the list", call, need, want)
		}
		method, path, ok := strings.Cut(call, " ")
		if !ok {
			method, path = http.MethodGet, call
		}
		for _, token := range append(access.ScopeNames(), "") {
			has, _ := access.ParseScopes(token)
			r := httptest.NewRequest(method, path, strings.NewReader("{}"))
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			refused := w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized
			if want := token == "" || !has.Has(need); refused != want {
				t.Errorf("%s with scope %q: got %d %s, want refused %v", call, token, w.Code, w.Body, want)
			}
			if token == "" && (w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != "Bearer") {
				t.Errorf("%s: got %d %v, want 401 and how to go on", call, w.Code, w.Header())
			}
		}
	}
}

// A batch needs the scopes of all its requests, and counts nothing without them.
func TestBatchScopes(t *testing.T) {
	t.Parallel()
	api := locked(t)
	send := func(token, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w
	}
	const action = `{"attributes":{"action":"post","user":"42"}`
	for _, verb := range []string{"record", "refund"} {
		w := send("decide", "/v1/batch", `{"requests":[`+action+`},`+action+`,"verb":"`+verb+`"}]}`)
		if want := `"detail":"decide lacks scope record; it has decide"`; w.Code != 403 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %s, want 403 and %s", verb, w.Code, w.Body, want)
		}
	}
	if w := send("record", "/v1/batch", `{"requests":[`+action+`,"verb":"check"}]}`); w.Code != 403 {
		t.Errorf("a check with scope record: got %d, want 403", w.Code)
	}
	if w := send("record", "/v1/batch", `{"requests":[`+action+`,"verb":"record"}]}`); w.Code != 200 {
		t.Errorf("a record with scope record: got %d %s, want 200", w.Code, w.Body)
	}
	if w := send("decide", "/v1/check", action+`}`); !strings.Contains(w.Body.String(), `"used":1,`) {
		t.Errorf("got %s, want one hit, from the batch that was admitted", w.Body)
	}
}

// tokensFile returns a new tokens file.
func tokensFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
