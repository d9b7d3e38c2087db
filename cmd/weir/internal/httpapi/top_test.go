package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/window"
)

// An answer about very many rules stays small.
func TestTopOfManyRules(t *testing.T) {
	t.Parallel()
	rules := "rules: ["
	for i := range 6000 {
		rules += fmt.Sprintf("{name: rule-%d, when: {page: page-%d}, per: [user], limit: 9, window: 1h},", i, i)
	}
	b := newBench(t, rules+"]")
	for i := range 6000 {
		for _, user := range []string{"ann", "bob"} {
			b.call(t, fmt.Sprintf("POST /v1/take\n{\"attributes\": {\"page\": \"page-%d\", \"user\": %q}}", i, user))
		}
		if i%1000 == 0 {
			b.call(t, "GET /v1/top?rule=rule-0") // which counts
		}
	}
	for query, keys := range map[string]int{"n=1000": 6000, "n=1000&rule=rule-7": 2} {
		if got := strings.Count(b.call(t, "GET /v1/top?"+query), `{"key":`); got != keys {
			t.Errorf("%s: got %d keys, want %d", query, got, keys)
		}
	}
}

// Large answers about top keys and denials take memory of large requests, before they are made and until the client has
// read them.
func TestTopReservesMemory(t *testing.T) {
	t.Parallel()
	resources := &access.ResourceLimits{Memory: 700 << 10}
	tops := top.New(top.Config{Keys: 1000}, namespace.Default)
	t.Cleanup(tops.Close)
	engine, _ := scripttest.NewEngine(t, posts, func() window.Instant { return window.At(scripttest.Start) }, weir.WithObserver(tops))
	api := httpapi.New(namespace.NewSet(namespace.New(namespace.Default, engine, 0, tops)), httpapi.Config{Resources: resources})
	for i := range 1000 {
		if _, err := engine.Take(t.Context(), weir.Request{Attributes: weir.Attributes("action", "post", "user", fmt.Sprintf("%d%s", i, strings.Repeat("x", 100))), Hits: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for path, least := range map[string]int64{"/v1/top?n=1000": 1000 * 256 * 2, "/v1/denials?n=500": 500 << 10} {
		get := func(w http.ResponseWriter) { api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody)) }
		var size int64
		get(reader{httptest.NewRecorder(), func(p []byte) {
			size = int64(len(p))
			if _, memory := resources.Now(); memory < max(size, least) || memory > max(size, least)+64<<10 {
				t.Errorf("%s: got %d bytes reserved for an answer of %d", path, memory, size)
			}
			w := httptest.NewRecorder()
			if get(w); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "--max-request-memory") {
				t.Errorf("%s: got %d %.100s beside another large answer, want 503", path, w.Code, w.Body)
			}
		}})
		if size == 0 {
			t.Errorf("%s: got no answer", path)
		}
		if _, memory := resources.Now(); memory != 0 {
			t.Errorf("%s: got %d bytes reserved in the end", path, memory)
		}
	}
}

// reader is a client that calls read with an answer before it reads it.
type reader struct {
	http.ResponseWriter
	read func(p []byte)
}

func (r reader) Write(p []byte) (int, error) {
	r.read(p)
	return r.ResponseWriter.Write(p)
}
