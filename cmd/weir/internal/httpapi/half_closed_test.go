package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// A client that closes its side of the connection behind its request, as nc -N does, is answered. To
// net/http it has gone.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	engine := scripttest.Engine(t, scripttest.Rules(t, "rules: [{name: posts, per: [user], limit: 9, window: 1h, ban: {for: 1h}}]"))
	space := keeping(namespace.New(namespace.Default, engine, 0, nil), time.Now)
	api := httpapi.New(namespace.NewSet(space), httpapi.Config{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct{ method, url, body string }{
		{http.MethodPost, "/v1/take", `{"attributes": {"user": 42}}`},
		{http.MethodPost, "/v1/batch", `{"requests": [{"attributes": {"user": 42}}]}`},
		{http.MethodPost, "/v1/explain", `{"attributes": {"user": 42}}`},
		{http.MethodGet, "/v1/usage?rule=posts&user=42", ""},
		{http.MethodGet, "/v1/gate?user=42", ""},
		{http.MethodPost, "/v1/set", `{"rule": "posts", "attributes": {"user": 42}, "hits": 3}`},
		{http.MethodPost, "/v1/unban", `{"rule": "posts", "attributes": {"user": 42}}`},
		{http.MethodDelete, "/v1/usage?rule=posts&user=42", ""},
		{http.MethodPut, "/v1/overrides", `{"rule": "posts", "attributes": {"user": "42"}, "limit": 3}`},
		{http.MethodDelete, "/v1/overrides?rule=posts&user=42", ""},
	} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(gone, tc.method, tc.url, strings.NewReader(tc.body)))
		if got := w.Body.String(); w.Code/100 != 2 || strings.Contains(got, "canceled") {
			t.Errorf("%s: got %d %s, want an answer", tc.url, w.Code, got)
		}
	}
}
