package koalaapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/koalaapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/store/memstore"
)

// koala's calls lead to a namespace by path, header or token. Rules of the same name
// and code have their own counts and rows in each.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	counts := memstore.New()
	t.Cleanup(func() { counts.Close() })
	var all []*namespace.Namespace
	lines := access.Line("ops", "ops", access.All, "") + "\n"
	for name, limit := range map[string]string{"default": "9", "a": "1", "b": "2"} {
		e := scripttest.Engine(t, scripttest.Rules(t, `rules: [{name: koala-1, code: 7, per: [uid], limit: `+limit+`, window: 1h}]`),
			weir.WithStore(counts), weir.WithNamespace(name))
		all = append(all, namespace.New(name, e, 0, nil))
		lines += access.Line(name, name, access.All, name) + "\n"
	}
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := scripttest.Keys(t, file)
	auth := &access.Authenticator{Keys: keys, Reach: access.ReachNamed}
	k := koalaapi.New(namespace.NewSet(all...), koalaapi.Config{Auth: auth})
	const take, allowed, denied = "/rule/browse?uid=u&_writeThrough=yes", `"Str_reason":"Allow"`, `"Ret_code":7`
	for _, tc := range []struct {
		token, path, header string
		status              int
		want                string // a part of the answer
	}{
		{"a", take, "", 200, allowed},
		{"a", take, "", 200, denied},
		{"a", "/ns/a" + take, "a", 200, denied},
		{"b", take, "", 200, allowed},
		{"ops", "/ns/b" + take, "", 200, allowed},
		{"ops", take, "b", 200, denied},
		{"ops", take, "", 200, allowed},

		{"a", "/ns/b" + take, "", 403, "a may use the namespace a only"},
		{"a", take, "b", 403, "a may use the namespace a only"},
		{"a", "/ns/b/rule/update?uid=u", "", 403, "a may use the namespace a only"},
		{"a", "/ns/b/rule/feedback?uid=u", "", 403, "a may use the namespace a only"},
		{"a", `/ns/b/multi/browse?argsJson=[]`, "", 403, "a may use the namespace a only"},
		{"a", "/ns/b/rule/browse_complete?uid=u", "", 403, "a may use the namespace a only"},
		// Whatever a client asks, an answer that it can read tells that it may not.
		{"wrong", take, "", 403, `{"Ret_type":-1,"Ret_code":0,"Err_no":-3,"Err_msg":"wrong token",`},
		{"wrong", "/rule/browse_complete?uid=u", "", 403, `[{"Ret_type":-1,"Ret_code":0,"Err_no":-3,`},
		{"wrong", "/multi/browse?argsJson=[]", "", 403, `{"Ret_type":-1,"Ret_code":0,"Err_no":-3,`},
		{"wrong", "/rule/update?uid=u", "", 403, `{"err_no":-3, "err_msg":"wrong token"}`},
		{"ops", "/ns/none" + take, "", 404, "not found"},
		{"ops", "/ns/.." + take, "", 400, "want up to 64 letters"},
	} {
		r := httptest.NewRequest(http.MethodGet, tc.path, nil)
		r.Header.Set("Authorization", "Bearer "+tc.token)
		if tc.header != "" {
			r.Header.Set(namespace.Header, tc.header)
		}
		w := httptest.NewRecorder()
		k.ServeHTTP(w, r)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s %q: got %d %s, want %d %s", tc.token, tc.path, tc.header, w.Code, w.Body, tc.status, tc.want)
		}
	}
}

// A service that has too much to do answers with the row of a failure.
func TestBusy(t *testing.T) {
	t.Parallel()
	k := koalaapi.New(namespace.Only(newBench(t, `rules: [{name: a, per: [uid], limit: 1, window: 1h}]`).engine), koalaapi.Config{Resources: &access.ResourceLimits{Loading: func() bool { return true }}})
	for path, want := range map[string]string{
		"/rule/browse?uid=u":          `{"Ret_type":-1,"Ret_code":0,"Err_no":-5,`,
		"/rule/browse_complete?uid=u": `[{"Ret_type":-1,"Ret_code":0,"Err_no":-5,`,
		"/rule/update?uid=u":          `{"err_no":-5, `,
	} {
		w := httptest.NewRecorder()
		k.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusServiceUnavailable || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%s: got %d %s, want 503 %s", path, w.Code, w.Body, want)
		}
	}
}

// A health check, which anyone may make, takes no place of a call, and does not wait for the ping of another one.
func TestAliveTakesNoPlace(t *testing.T) {
	t.Parallel()
	full := &access.ResourceLimits{Requests: 1}
	if err := full.Begin(); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	koalaapi.New(nil, koalaapi.Config{Resources: full}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/monitor/alive", nil))
	if w.Code != http.StatusOK {
		t.Errorf("got %d %s, want 200", w.Code, w.Body)
	}
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		k := koalaapi.New(nil, koalaapi.Config{Ping: func(ctx context.Context) error {
			<-hangs
			return nil
		}})
		check := func() bool {
			answered := make(chan bool, 1)
			go func() {
				k.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/monitor/alive", nil))
				answered <- true
			}()
			select {
			case <-answered:
				return true
			case <-time.After(time.Second):
				return false
			}
		}
		go func() { hangs <- struct{}{} }()
		if !check() {
			t.Error("the first check got no answer")
		}
		if check() {
			t.Error("a check did not wait for its ping")
		}
		if !check() {
			t.Error("a check waited for the ping of another")
		}
		close(hangs)
	})
}

// The answer to a large multi/browse takes memory that the service limits, until it is written.
func TestMultiReservesMemory(t *testing.T) {
	t.Parallel()
	resources := &access.ResourceLimits{Memory: 1 << 20}
	k := koalaapi.New(namespace.Only(newBench(t, `rules: [{name: a, per: [uid], limit: 1, window: 1h}]`).engine), koalaapi.Config{Resources: resources})
	for _, tc := range []struct {
		jobs, status int
		want         string
	}{
		{1000, http.StatusOK, `[{"Id":"","Result":{"Ret_type":0,`},
		{1500, http.StatusBadRequest, `[{"Id":"","Result":{"Ret_type":-1,`},
		{50_000, http.StatusServiceUnavailable, `{"Ret_type":-1,"Ret_code":0,"Err_no":-5,`},
	} {
		w := &writer{ResponseRecorder: httptest.NewRecorder(), resources: resources}
		k.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/multi/browse?argsJson=["+strings.TrimSuffix(strings.Repeat("{},", tc.jobs), ",")+"]", nil))
		if w.Code != tc.status || !strings.HasPrefix(w.Body.String(), tc.want) {
			t.Errorf("%d requests: got %d %.100s, want %d %s", tc.jobs, w.Code, w.Body, tc.status, tc.want)
		}
		if w.Code != http.StatusServiceUnavailable && w.reserved < int64(w.Body.Len()) {
			t.Errorf("%d requests: got %d bytes reserved for an answer of %d", tc.jobs, w.reserved, w.Body.Len())
		}
		if _, after := resources.Now(); after != 0 {
			t.Errorf("%d requests: got %d bytes reserved after the answer", tc.jobs, after)
		}
	}
}

// writer knows how many requests were under way, and how much memory was reserved, when the answer was written.
type writer struct {
	*httptest.ResponseRecorder
	resources          *access.ResourceLimits
	requests, reserved int64
}

func (w *writer) Write(p []byte) (int, error) {
	w.requests, w.reserved = w.resources.Now()
	return w.ResponseRecorder.Write(p)
}

// Many short parameters take much more memory than the query, which is reserved. Who is refused gets none, and a
// client that reads slowly keeps no other requests away.
func TestManyParameters(t *testing.T) {
	t.Parallel()
	resources := &access.ResourceLimits{Requests: 1, Memory: 1 << 20}
	k := koalaapi.New(namespace.Only(newBench(t, `rules: [{name: a, per: [uid], limit: 1, window: 1h}]`).engine), koalaapi.Config{Resources: resources})
	for _, tc := range []struct {
		uri    string
		status int
		least  int64 // bytes reserved
	}{
		{"/rule/browse?uid=7", 200, 0},
		{"/rule/browse?uid=7&" + strings.Repeat("a&", 1000), 200, 32_000},
		{"/rule/browse?" + strings.Repeat("a&", 50_000), 503, 0},
		{"/elsewhere?" + strings.Repeat("a&", 50_000), 404, 0},
	} {
		w := &writer{ResponseRecorder: httptest.NewRecorder(), resources: resources}
		k.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tc.uri, nil))
		if w.Code != tc.status {
			t.Errorf("%.30s: got status %d, want %d", tc.uri, w.Code, tc.status)
		}
		if w.requests != 0 || w.reserved < tc.least {
			t.Errorf("%.30s: got %d requests and %d bytes reserved, want none and at least %d", tc.uri, w.requests, w.reserved, tc.least)
		}
	}
}
