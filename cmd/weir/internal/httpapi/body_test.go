package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// TestBodyBreaksOff sends half a body, then nothing or too late.
func TestBodyBreaksOff(t *testing.T) {
	t.Parallel()
	api := newBench(t, posts).api
	for _, tc := range []struct {
		err  error
		want int
	}{
		{os.ErrDeadlineExceeded, http.StatusRequestTimeout},
		{io.ErrUnexpectedEOF, http.StatusBadRequest},
	} {
		body := io.MultiReader(strings.NewReader(`{"attributes":`), iotest.ErrReader(tc.err))
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/take", body))
		if w.Code != tc.want {
			t.Errorf("%v: got %d %s, want %d", tc.err, w.Code, w.Body, tc.want)
		}
	}
}

// A client that announces a large body and does not send it takes no memory of other requests. Large
// bodies take theirs as they arrive.
func TestAnnouncedBodies(t *testing.T) {
	t.Parallel()
	b := &access.ResourceLimits{Memory: 1 << 20}
	api, _ := bounded(t, b)
	body, send := io.Pipe()
	ended := make(chan struct{})
	go func() {
		r := httptest.NewRequest(http.MethodPost, "/v1/take", body)
		r.ContentLength = 1 << 20
		api.ServeHTTP(httptest.NewRecorder(), r)
		close(ended)
	}()
	for _, tc := range []struct{ sends, most int }{{1 << 10, 0}, {126 << 10, 128 << 10}, {512 << 10, 704 << 10}} {
		if _, err := send.Write(make([]byte, tc.sends)); err != nil {
			t.Fatal(err)
		}
		if _, err := send.Write([]byte(" ")); err != nil { // it is read after the memory is reserved
			t.Fatal(err)
		}
		if _, memory := b.Now(); memory < int64(tc.most)/2 || memory > int64(tc.most) {
			t.Errorf("got %d bytes reserved after %d more, want at most %d", memory, tc.sends, tc.most)
		}
	}
	send.Close()
	<-ended
	if _, memory := b.Now(); memory != 0 {
		t.Errorf("got %d bytes reserved in the end", memory)
	}
}
