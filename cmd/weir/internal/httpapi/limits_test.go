package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const posts = "rules:\n  - {name: posts, when: {action: post}, per: [user], limit: 5, window: 1h}\n"

// TestSizes sends the largest body and batch that fit, and one more.
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

// unreachable is a store that cannot read its counters.
type unreachable struct{ store.Store }

func (unreachable) Read(context.Context, *store.Op) (window.Reading, error) {
	return window.Reading{}, &store.OutageError{Err: errors.New("connection refused")}
}

// With the policy deny only the store knows the numbers of a key.
func TestUsageOutOfReach(t *testing.T) {
	t.Parallel()
	engine := scripttest.Engine(t, scripttest.Rules(t, strings.Replace(posts, "1h}", "1h, on_outage: deny}", 1)), weir.WithStore(unreachable{}))
	w := httptest.NewRecorder()
	httpapi.New(namespace.Only(engine), httpapi.Config{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/usage?rule=posts&user=42", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "connection refused") {
		t.Errorf("got %d %s, want 503 and why", w.Code, w.Body)
	}
}

// TestUnavailable calls a service whose store is closed, and gives up a call over HTTP/2.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	closed := newBench(t, posts)
	if err := closed.counts.Close(); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name string
		api  http.Handler
		ctx  context.Context
		want string
	}{
		{"closed store", closed.api, t.Context(), "store is closed"},
		{"caller gone", newBench(t, posts).api, gone, "context canceled"},
	} {
		req := httptest.NewRequestWithContext(tc.ctx, http.MethodPost, "/v1/take",
			strings.NewReader(`{"attributes":{"action":"post","user":"42"}}`))
		req.ProtoMajor = 2
		w := httptest.NewRecorder()
		tc.api.ServeHTTP(w, req)
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: got %d %s, want 503 %s", tc.name, w.Code, w.Body, tc.want)
		}
	}
}
