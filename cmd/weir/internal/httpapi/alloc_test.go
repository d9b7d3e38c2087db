//go:build !race

// The race detector makes sync.Pool forget at random, so this runs without it.

package httpapi_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A take allocates the text of its body, of which the attributes are parts, and its context.
func TestTakeAllocations(t *testing.T) {
	k := newTaker(newBench(t, posts).api)
	if n := testing.AllocsPerRun(1000, func() { k.take(takeBody) }); n != 2 {
		t.Errorf("got %v allocations, want 2", n)
	}
	if k.answer.status != 0 || k.answer.length == 0 {
		t.Errorf("got status %d and %d bytes, want a decision", k.answer.status, k.answer.length)
	}
}

// So do a take that holds, a renewal and a settle.
func TestHoldAllocations(t *testing.T) {
	api := newBench(t, "rules: [{name: exports, per: [user], limit: 10, window: {held: 1h}}]").api
	answer := &kept{header: http.Header{}}
	body := bytes.NewReader(nil)
	var take, renew, settle *http.Request
	for path, to := range map[string]**http.Request{"/v1/take": &take, "/v1/renew": &renew, "/v1/settle": &settle} {
		*to = httptest.NewRequest(http.MethodPost, path, body)
	}
	call := func(r *http.Request, text []byte) {
		body.Reset(text)
		api.ServeHTTP(answer, r)
	}
	first, name := []byte(`{"attributes": {"user": "42"}}`), []byte(`"receipt":"`)
	ends := make([]byte, 0, 1024)
	cycle := func() {
		call(take, first)
		_, after, _ := bytes.Cut(answer.text, name)
		receipt, _, _ := bytes.Cut(after, name[len(name)-1:])
		ends = append(append(append(ends[:0], `{"receipt": "`...), receipt...), `", "attributes": {"user": "42"}}`...)
		call(renew, ends)
		call(settle, ends)
	}
	if n := testing.AllocsPerRun(1000, cycle); n != 6 {
		t.Errorf("got %v allocations, want 6", n)
	}
	if !bytes.Contains(answer.text, []byte(`"used":0,"remaining":10,"reset_after":0,"held":true`)) {
		t.Errorf("got %s, want a place that is settled", answer.text)
	}
}

// kept is a writer of answers that keeps the last one.
type kept struct {
	header http.Header
	text   []byte
}

func (k *kept) Header() http.Header { return k.header }
func (k *kept) WriteHeader(int)     {}
func (k *kept) Write(p []byte) (int, error) {
	k.text = append(k.text[:0], p...)
	return len(p), nil
}
