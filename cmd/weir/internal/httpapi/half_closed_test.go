package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A client that closes its side of the connection behind its request, as nc -N does, is answered. To
// net/http it has gone.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	api := newBench(t, "rules: [{name: posts, per: [user], limit: 9, window: 1h}]").api
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct{ method, url, body string }{
		{http.MethodPost, "/v1/take", `{"attributes": {"user": 42}}`},
		{http.MethodPost, "/v1/batch", `{"requests": [{"attributes": {"user": 42}}]}`},
		{http.MethodPost, "/v1/explain", `{"attributes": {"user": 42}}`},
		{http.MethodGet, "/v1/usage?rule=posts&user=42", ""},
		{http.MethodGet, "/v1/gate?user=42", ""},
	} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(gone, tc.method, tc.url, strings.NewReader(tc.body)))
		if got := w.Body.String(); w.Code != http.StatusOK || strings.Contains(got, "canceled") {
			t.Errorf("%s: got %d %s, want an answer", tc.url, w.Code, got)
		}
	}
}
