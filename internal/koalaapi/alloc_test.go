//go:build !race

// The race detector makes sync.Pool forget at random, so this runs without it.

package koalaapi_test

import (
	"net/http"
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

func TestBrowseAllocatesNothing(t *testing.T) {
	b := newBench(t, "rules: [{name: koala-1, when: {act: ask}, per: [uid], limit: 1000000, window: {fixed: 1h}}]")
	for _, uri := range []string{"/rule/browse?act=ask&uid=7", "/rule/browse?act=ask&uid=7&_writeThrough=yes", "/rule/update?act=ask&uid=7"} {
		r, err := http.NewRequest(http.MethodGet, uri, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.RequestURI = uri
		w := &discard{header: http.Header{}}
		if n := testing.AllocsPerRun(1000, func() { clear(w.header); b.api.ServeHTTP(w, r) }); n != 0 {
			t.Errorf("%s: got %v allocations, want none", uri, n)
		}
		if w.length == 0 {
			t.Errorf("%s: got no answer", uri)
		}
	}
}
