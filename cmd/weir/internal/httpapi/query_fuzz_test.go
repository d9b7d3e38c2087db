package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// FuzzQuery checks that, for any query of a call and any headers that it names, the answer is valid: a
// status that is documented, JSON, and header fields of RFC 9651.
func FuzzQuery(f *testing.F) {
	for _, seed := range []struct{ query, value string }{
		{"action=post&user=42", ""},
		{"action=post&header.user=X-User&status.deny=403", "ann"},
		{"header.ip=X-Forwarded-For&action=post", "192.0.2.1, 10.0.0.1"},
		{"header.path=X-User&action=post&user=1", "//a/../%61"},
		{"rule=posts&user=42", ""},
		{"rule=posts&n=5", ""},
		{"status.deny=200&status.x=&header.=&=&%zz=1&a=%ff;b&user=\x00", "\r\n"},
		{strings.Repeat("a=b&", 100), strings.Repeat("x", 9000)},
	} {
		f.Add(seed.query, seed.value)
	}
	api := newBench(f, "rules: [{name: posts, when: {action: post}, per: [user], limit: 5, window: 1h}, {name: ips, per: [ip], limit: 1, window: 1h}]").api
	paths := map[string]string{"/v1/gate": http.MethodGet, "/v1/usage": http.MethodGet, "/v1/top": http.MethodGet, "/v1/denials": http.MethodGet}
	f.Fuzz(func(t *testing.T, query, value string) {
		for path, method := range paths {
			r := httptest.NewRequest(method, path, http.NoBody)
			r.URL.RawQuery = query
			r.Header = http.Header{"X-User": {value}, "X-Forwarded-For": {value}}
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			switch w.Code {
			case http.StatusOK, http.StatusBadRequest, http.StatusNotFound:
			default:
				// The query of a gate call can set the status of an outcome.
				if path != "/v1/gate" || w.Code != http.StatusTooManyRequests && !strings.Contains(query, "status") {
					if q, err := url.QueryUnescape(query); err != nil || !strings.Contains(q, "status") {
						t.Fatalf("%s?%q, %q: got status %d", path, query, value, w.Code)
					}
				}
			}
			if body := w.Body.Bytes(); len(body) > 0 && !json.Valid(body) {
				t.Fatalf("%s?%q, %q: got %q, want JSON", path, query, value, body)
			}
			for _, field := range []string{"Ratelimit", "Ratelimit-Policy"} {
				if lines := w.Header()[field]; lines != nil {
					if _, err := httpsfv.UnmarshalList(lines); err != nil {
						t.Fatalf("%s?%q: got %s: %q: %v", path, query, field, lines, err)
					}
				}
			}
		}
	})
}
