package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
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
