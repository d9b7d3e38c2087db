package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// taker calls an API again and again with what one call needs.
type taker struct {
	api    http.Handler
	body   *strings.Reader
	req    *http.Request
	answer *discard
}

func newTaker(api http.Handler) *taker {
	body := strings.NewReader("")
	return &taker{
		api:    api,
		body:   body,
		req:    httptest.NewRequest(http.MethodPost, "/v1/take", body),
		answer: &discard{header: http.Header{}},
	}
}

func (k *taker) take(body string) {
	k.body.Reset(body)
	k.api.ServeHTTP(k.answer, k.req)
}

// discard is a writer of answers that keeps their status and length.
type discard struct {
	header         http.Header
	status, length int
}

func (d *discard) Header() http.Header  { return d.header }
func (d *discard) WriteHeader(code int) { d.status = code }
func (d *discard) Write(p []byte) (int, error) {
	d.length = len(p)
	return len(p), nil
}

const takeBody = `{"attributes": {"action": "post", "user": "42"}}`

// BenchmarkTake measures the handler without net/http, and one
// that reads nothing and writes an answer of the same size.
func BenchmarkTake(b *testing.B) {
	empty := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(make([]byte, 128))
	})
	b.Run("empty", func(b *testing.B) {
		k := newTaker(empty)
		b.ReportAllocs()
		for b.Loop() {
			k.take(takeBody)
		}
	})
	api := newBench(b, posts).api
	b.Run("denied", func(b *testing.B) {
		k := newTaker(api)
		b.ReportAllocs()
		for b.Loop() {
			k.take(takeBody)
		}
	})
	b.Run("allowed", func(b *testing.B) {
		k := newTaker(api)
		bodies := make([]string, 1000)
		for i := range bodies {
			bodies[i] = `{"attributes": {"action": "post", "user": "u` + strconv.Itoa(i) + `"}, "hits": 0}`
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			k.take(bodies[i%len(bodies)])
		}
	})
}
