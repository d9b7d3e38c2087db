package koalaapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A client that closes its side of the connection behind its request, as nc
// does, is answered. To net/http it has gone.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	b := newBench(t, "rules: [{name: koala-1, code: 1, when: {act: ask}, per: [uid], limit: 1, window: {fixed: 1h}}]")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct{ uri, want string }{
		{"/rule/browse?act=ask&uid=7&_writeThrough=yes", `"Err_no":0,`},
		{"/rule/update?act=ask&uid=7", `"err_no":0,`},
		{"/rule/browse_complete?act=ask&uid=7", `"Err_no":10,`},
		{"/multi/browse?argsJson=[{%22Id%22:%220%22,%22Arg%22:%22act=ask%26uid=7%22}]", `"Err_no":10,`},
		{"/monitor/alive", `"errno": 0,`},
	} {
		w := httptest.NewRecorder()
		b.api.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodGet, tc.uri, nil))
		if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %d %s, want %s", tc.uri, w.Code, got, tc.want)
		}
	}
}
