package answer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/store"
)

// TestProblemOf checks the status and the text of each kind of error, bare and
// wrapped.
func TestProblemOf(t *testing.T) {
	t.Parallel()
	placed := fault.Newf("attributes.user", "is there twice")
	placed.Place = fault.Place{Line: 2, Column: 7}
	for _, tc := range []struct {
		err    error
		status int
		want   string
	}{
		{fault.Newf("hits", "-1: want a number from 0"), 400, `"detail":"hits: -1: want a number from 0","field":"hits"`},
		{placed, 400, `"detail":"attributes.user: is there twice","field":"attributes.user","place":"2:7"`},
		{fault.List{placed, fault.Newf("hits", "p")}, 400, `"detail":"attributes.user: is there twice","field":"attributes.user","place":"2:7"`},
		{weir.ErrUnknownRule, 404, `"detail":"no such rule"`},
		{store.ErrClosed, 503, ""},
		{store.ErrMoved, 409, ""},
		{once.ErrFull, 429, ""},
		{context.Canceled, 503, `"detail":"context canceled"`},
		{context.DeadlineExceeded, 503, `"detail":"context deadline exceeded"`},
		{&store.OutageError{Err: errors.New("connection refused")}, 503, ""},
		{errors.New("something else"), 500, `"detail":"something else"`},
		{&answer.Problem{Status: 403, Detail: "no"}, 403, `"detail":"no"`},
	} {
		if got := answer.ProblemOf(fmt.Errorf("weir: take: %w", tc.err)).Status; got != tc.status {
			t.Errorf("%v, wrapped: got status %d, want %d", tc.err, got, tc.status)
		}
		p := answer.ProblemOf(tc.err)
		if p.Status != tc.status {
			t.Errorf("%v: got status %d, want %d", tc.err, p.Status, tc.status)
		}
		if p.RetryAfter > 0 != (tc.status == 429) {
			t.Errorf("%v: got a wait of %v", tc.err, p.RetryAfter)
		}
		title := map[int]string{400: "Bad Request", 403: "Forbidden", 404: "Not Found", 500: "Internal Server Error", 503: "Service Unavailable"}[tc.status]
		want := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,%s}`, title, tc.status, tc.want)
		if got := string(p.Append(nil)); tc.want != "" && got != want {
			t.Errorf("%v: got %s, want %s", tc.err, got, want)
		}
	}
}

// The place where an export ended is read back for the same rule and period only, with the name of a host in it, too.
func TestPlace(t *testing.T) {
	t.Parallel()
	next := "18446744073709551615 " + strings.Repeat("h", 253) + ":65535"
	text := answer.Place("rule", true, []byte(next))
	if got, ok := answer.ParsePlace("rule", true, text); !ok || string(got) != next {
		t.Errorf("got %q, %v, want %q", got, ok, next)
	}
	if _, ok := answer.ParsePlace("rule", false, text); ok {
		t.Error("a place of another period was read")
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	(&answer.Problem{Status: 405, Detail: "use POST", Allow: "POST", Errors: []string{"a", "b"}}).Write(w)
	if got := w.Header(); w.Code != 405 || got.Get("Allow") != "POST" || got.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %v, want 405, Allow and the type of a problem", w.Code, got)
	}
	want := `{"type":"about:blank","title":"Method Not Allowed","status":405,"detail":"use POST","errors":["a","b"]}` + "\n"
	if got := w.Body.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
