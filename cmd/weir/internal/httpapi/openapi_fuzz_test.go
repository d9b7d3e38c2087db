package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirhq/weir/cmd/weir/internal/apitest"
	"github.com/weirhq/weir/cmd/weir/internal/httpapi"
)

// FuzzDescribed sends bodies, and compares what the service accepts with what the
// schemas of the description accept. A schema cannot say everything: a body that it
// accepts may be refused for one of the reasons below.
func FuzzDescribed(f *testing.F) {
	for _, body := range []string{
		`{"attributes":{"action":"post","user":42},"hits":3}`,
		`{"attributes":{"a":1e3,"b":-1.50,"c":true}}`,
		`{"attributes":{"a":null}}`,
		`{"attributes":{"":"b"},"hits":1.5}`,
		`{"attributes":{"a":"b"},"feedback":"solved","hits":0}`,
		`{"attributes":{"a":"b"},"hits":-1}`,
		`{"attributes":{},"receipt":"QACJk4KkPBjO70lpg0AGYNmzv8ZA207CF0CZbqixqwhN2wQizg"}`,
		`{"requests":[{"attributes":{},"verb":"record"},{"attributes":{},"verb":"drop"}]}`,
		`{"requests":[{"attributes":{},"verb":"settle","receipt":"x y"}]}`,
		`{"requests":{}}`,
		`{"attributes":{},"hits":9007199254740991}`,
		`{"attributes":{},"hits":9007199254740992}`,
		`{"attributes":{},"verb":"take"}`,
		`{"attributes":{` + manyAttributes(65) + `}}`,
		`{"attributes":{"a":"` + strings.Repeat("x", 1025) + `"}}`,
		`{"attributes":{},"idempotency_key":"k","idempotency_for":60}`,
		`{"attributes":{},"idempotency_key":"","hits":0}`,
		`{"attributes":{},"idempotency_for":86401,"idempotency_key":"k"}`,
		`{"requests":[{"attributes":{},"verb":"check","idempotency_key":"k"}]}`,
		`[]`,
		`{"rule":"posts-per-hour","attributes":{"user":"acme"},"limit":500,"burst":1,"until":"2026-12-01T00:00:00Z","note":"ticket 4711"}`,
		`{"rule":"posts-per-hour","attributes":{"user":42},"limit":0}`,
		`{"rule":"posts-per-hour","attributes":{},"limit":1}`,
		`{"rule":"","attributes":{"user":"acme"},"limit":-1,"burst":0}`,
		`{"rule":"none","attributes":{"user":"acme","ip":"::1"},"limit":9007199254740992,"until":"tomorrow"}`,
		`{"rule":"posts-per-hour","attributes":{"user":"acme"},"limit":1.5,"note":"` + strings.Repeat("x", 257) + `"}`,
		`{"rule":"posts-per-hour","attributes":{"user":"acme"},"limit":5,"set":"2026-12-01T00:00:00Z"}`,
		`{"rule":"posts-per-hour","attributes":{"user":"acme"},"hits":3}`,
		`{"rule":"posts-per-hour","attributes":{"user":"acme"},"hits":-3}`,
		`{"rule":"posts-per-hour","attributes":{"user":"acme"}}`,
		`{"rule":"posts-per-hour"}`,
		`{"rule":"no-such-rule","attributes":{"user":42},"limit":0}`,
	} {
		for call := range bodies {
			f.Add(call, body)
		}
	}
	d := apitest.Load(f)
	api := described(f, d, httpapi.Config{})
	reasons := []string{
		"is there twice", "bytes, more than", "surrogate", "too many digits", "receipt", "feedback", "UTF-8",
		"is 0, which counts nothing",
		// What rules an override, a set and an unban go with.
		"not found", "no such rule", "attribute", "can be overridden", "one counter for all", "name some or all", "per it, but per", "has no bucket",
		"is over", "a year up to", "is empty", "cannot be set", "in flight", "are alive", "is banned", "could meet", "too many overrides", "has no ban",
	}
	f.Fuzz(func(t *testing.T, call int, body string) {
		if call < 0 || call >= len(bodies) || hugeExponent.MatchString(body) || !utf8.ValidString(body) || !json.Valid([]byte(body)) || halfPair.MatchString(body) {
			return
		}
		method, path, _ := strings.Cut(bodies[call], " ")
		x := apitest.Send(api, httptest.NewRequest(method, path, strings.NewReader(body)))
		fits := d.Fits(t, x)
		refused := x.Status != http.StatusOK && x.Status != http.StatusNoContent
		switch {
		case refused && x.Status != http.StatusBadRequest && (x.Status != http.StatusNotFound && x.Status != http.StatusConflict || !d.Has(method, path, x.Status)):
			t.Fatalf("got %d, want 200, 204, 400, or a described 404 or 409\n%s", x.Status, x)
		case refused == !fits:
		case !refused && path == "/v1/batch" && strings.Contains(x.Answer, `{"problem":`): // of a request in it
		case !refused:
			t.Fatalf("accepted, and not as described\n%s", x)
		default:
			for _, r := range reasons {
				if strings.Contains(x.Answer, r) {
					return
				}
			}
			t.Fatalf("refused, and as described\n%s", x)
		}
	})
}

// manyAttributes returns n members of an object.
func manyAttributes(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"a%d":1`, i)
	}
	return strings.Join(members, ",")
}

// bodies are the calls whose bodies have different schemas.
var bodies = []string{"POST /v1/take", "POST /v1/refund", "POST /v1/settle", "POST /v1/batch", "PUT /v1/overrides", "POST /v1/set", "POST /v1/unban"}

// FuzzDescribedQuery sends queries. The description has the parameters of what is accepted, and every
// answer.
func FuzzDescribedQuery(f *testing.F) {
	calls := []string{
		"DELETE /v1/overrides", "DELETE /v1/usage", "GET /v1/overrides", "GET /v1/usage", "GET /v1/audit", "GET /v1/export", "GET /v1/top", "GET /v1/denials",
	}
	for _, query := range []string{
		"rule=posts-per-hour&user=acme", "rule=posts-per-hour", "rule=none&user=acme", "user=acme", "rule=&user=acme", "rule=posts-per-hour&user=acme&user=ann",
		"rule=posts-per-hour&ip=a", "rule=posts-per-hour&user=%ff", "rule=posts-per-hour&user=", "", "rule=a;b&user=c", "%zz", "&=&", "rule=posts-per-hour&after=YQ", "after=",
		"n=5", "n=0", "n=1001", "until=2026-12-01T00:00:00Z", "n=3&until=now", "rule=llm-tokens&period=last&format=csv&n=2", "rule=llm-tokens&after=x",
		"rule=page-views&page=" + strings.Repeat("x", 1025), strings.Repeat("a=b&", 65) + "rule=posts-per-hour",
	} {
		for call := range calls {
			f.Add(call, query)
		}
	}
	d := apitest.Load(f)
	api := described(f, d, httpapi.Config{})
	f.Fuzz(func(t *testing.T, call int, query string) {
		if call < 0 || call >= len(calls) {
			return
		}
		method, path, _ := strings.Cut(calls[call], " ")
		r := httptest.NewRequest(method, path, http.NoBody)
		r.URL.RawQuery = query
		if _, err := url.Parse(r.URL.RequestURI()); err != nil || strings.Contains(query, ";") {
			return // no client can send it, or [url.Values] lacks it
		}
		d.Serve(t, api, r)
	})
}
