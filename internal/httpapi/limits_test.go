package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const posts = "rules:\n  - {name: posts, when: {action: post}, per: [user], limit: 5, window: 1h}\n"

// TestSizes asks for the largest body and batch that fit, and one more.
func TestSizes(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	padded := func(size int) string {
		body := `{"attributes":{}}`
		return body + strings.Repeat(" ", size-len(body))
	}
	batch := func(n int) string {
		return `{"requests":[` + strings.TrimSuffix(strings.Repeat(`{"attributes":{}},`, n), ",") + `]}`
	}
	api := newBench(t, posts).api
	for _, tc := range []struct {
		path, body string
		length     bool // tell the length beforehand
		want       int
	}{
		{"/v1/take", padded(mib), true, 200},
		{"/v1/take", padded(mib), false, 200},
		{"/v1/take", padded(mib + 1), true, 413},
		{"/v1/take", padded(mib + 1), false, 413},
		{"/v1/batch", batch(1000), true, 200},
		{"/v1/batch", batch(1001), true, 400},
	} {
		req := httptest.NewRequest(http.MethodPost, tc.path, strings.NewReader(tc.body))
		if !tc.length {
			req.ContentLength = -1
		}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, req)
		if w.Code != tc.want {
			t.Errorf("%s with %d bytes: got %d %.200s, want %d", tc.path, len(tc.body), w.Code, w.Body, tc.want)
		}
	}
}
