package koalaapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// discard is a writer of answers that nobody reads.
type discard struct {
	header http.Header
	length int
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}
func (d *discard) Write(p []byte) (int, error) {
	d.length = len(p)
	return len(p), nil
}

// asker asks for uri again and again, without a socket.
func (b *bench) asker(t testing.TB, uri string) (ask func(), w *discard) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, uri, nil)
	w = &discard{header: http.Header{}}
	return func() { clear(w.header); b.api.ServeHTTP(w, r) }, w
}

func BenchmarkBrowse(b *testing.B) {
	bench := newBench(b, "rules: [{name: koala-1, code: 1, when: {act: ask}, per: [uid], limit: 1000000, window: {fixed: 1h}}]")
	for name, uri := range map[string]string{
		"check": "/rule/browse?act=ask&uid=7",
		"take":  "/rule/browse?act=ask&uid=7&_writeThrough=yes",
		"multi": "/multi/browse?argsJson=%5B%7B%22Id%22%3A%220%22%2C%22Arg%22%3A%22act%253Dask%2526uid%253D7%22%7D%5D",
	} {
		b.Run(name, func(b *testing.B) {
			ask, _ := bench.asker(b, uri)
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
		})
	}
}
