package answer_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
)

// A refusal waits for the body with HTTP/1 only, where the connection would be reset: with HTTP/2 clients without a token could
// keep the heads of a hundred requests for each connection.
func TestRefuse(t *testing.T) {
	t.Parallel()
	for major, left := range map[int]int{1: 0, 2: 4} {
		body := strings.NewReader("body")
		r, w := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(body)), httptest.NewRecorder()
		r.ProtoMajor = major
		answer.Refuse(w, r, errors.New("no"))
		if body.Len() != left || w.Code < 400 {
			t.Errorf("HTTP/%d: got status %d with %d bytes left, want %d", major, w.Code, body.Len(), left)
		}
	}
}
