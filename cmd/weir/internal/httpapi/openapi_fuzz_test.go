package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirhq/weir/cmd/weir/internal/apitest"
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
		`{"attributes":{},"receipt":"MImTgqQ8GM7vSWmDQAZg2bO_xkAAAAAAAAAAANtOwhdAmW6osasITdsEIs4"}`,
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
	} {
		for path := range bodies {
			f.Add(path, body)
		}
	}
	d := apitest.Load(f)
	api := newBench(f, posts).api
	reasons := []string{
		"is there twice", "bytes, more than", "surrogate", "too many digits", "receipt", "feedback", "UTF-8",
		"is 0, which counts nothing",
	}
	f.Fuzz(func(t *testing.T, path int, body string) {
		if path < 0 || path >= len(bodies) || hugeExponent.MatchString(body) || !utf8.ValidString(body) || !json.Valid([]byte(body)) || halfPair.MatchString(body) {
			return
		}
		x := apitest.Send(api, httptest.NewRequest(http.MethodPost, bodies[path], strings.NewReader(body)))
		fits := d.Fits(t, bodies[path], x)
		refused := x.Status != http.StatusOK
		switch {
		case refused && x.Status != http.StatusBadRequest:
			t.Fatalf("got %d, want 200 or 400\n%s", x.Status, x)
		case refused == !fits:
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

// bodies are the paths whose bodies have different schemas.
var bodies = []string{"/v1/take", "/v1/refund", "/v1/settle", "/v1/batch"}
