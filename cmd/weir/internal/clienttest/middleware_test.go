package clienttest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/httplimit"
)

// Middleware answers the same with an engine and with a client. Only the lengths of
// windows are missing in the header, because the rules stay with the service.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			limited, err := httplimit.Rules(ask(t, w.plain), func(r *http.Request, list []weir.Attribute) []weir.Attribute {
				return append(list, weir.Attributes("action", r.PathValue("action"), "user", r.PathValue("user"))...)
			})
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			mux.Handle("/{action}/{user}", limited.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
			call := func(path string) string {
				answer := httptest.NewRecorder()
				mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
				h := answer.Header()
				return strings.TrimSpace(strings.Join([]string{http.StatusText(answer.Code), h.Get("Ratelimit"), h.Get("Retry-After"), answer.Body.String()}, "|"))
			}
			for _, step := range []struct{ path, want string }{
				{"/login/ann", `OK|"logins";r=1||`},
				{"/login/ann", `OK|"logins";r=0||`},
				{"/login/ann", `Too Many Requests|"logins";r=0;t=60|60|` +
					`{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Too Many Requests","status":429,"detail":"denied by rule logins","violated-policies":["logins"]}`},
				{"/other/mallory", `Too Many Requests|||{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"denied by rule bad"}`},
			} {
				if got := call(step.path); got != step.want {
					t.Errorf("%s: got %s\nwant %s", step.path, got, step.want)
				}
			}
		})
	}
}

// A guard keeps what a call holds at a service, and gives it back.
func TestGuardHolds(t *testing.T) {
	t.Parallel()
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			g, err := guard.Rules(ask(t, w.plain), func(list, _ []weir.Attribute) []weir.Attribute { return list }, guard.Options[[]weir.Attribute]{})
			if err != nil {
				t.Fatal(err)
			}
			inFlight := func() int64 {
				u, err := w.plain.Usage(t.Context(), "exports", weir.Attributes("user", "ann"))
				if err != nil {
					t.Fatal(err)
				}
				return u.Used
			}
			call, err := g.Take(t.Context(), weir.Attributes("action", "export", "user", "ann"))
			if err != nil {
				t.Fatal(err)
			}
			if n := inFlight(); n != 1 {
				t.Errorf("got %d in flight, want 1", n)
			}
			g.End(call)
			if n := inFlight(); n != 0 {
				t.Errorf("got %d in flight after the end, want 0", n)
			}
		})
	}
}

// An unavailable service does not deny: the call could not be decided.
func TestMiddlewareWithoutService(t *testing.T) {
	t.Parallel()
	s, target := serve(t, grpcserver.Config{}, newPair(t).plain)
	c := open(t, target)
	limited, err := httplimit.Rules(c, func(_ *http.Request, list []weir.Attribute) []weir.Attribute {
		return append(list, weir.Attribute{Name: "user", Value: "ann"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	limited.Handler(http.NotFoundHandler()).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if want := "could not be decided"; answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), want) {
		t.Errorf("got %d %s, want 503 and %q", answer.Code, answer.Body, want)
	}
	if _, err := httplimit.Rules((*client.Client)(nil), func(*http.Request, []weir.Attribute) []weir.Attribute { return nil }); err == nil {
		t.Error("got no error for a nil client")
	}
}
