package echolimit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/weirhq/weir"
	echolimit "github.com/weirhq/weir/contrib/echo"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

var exports = rule.Rule{Name: "exports", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Held(30 * time.Second)}

func limiter(t *testing.T, l weir.Limit) *weir.Limiter {
	t.Helper()
	m, err := weir.NewLimiter(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func engine(t *testing.T, r rule.Rule, options ...weir.Option) *weir.Engine {
	t.Helper()
	set, err := rule.New([]rule.Rule{r}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := weir.NewEngine(set, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func router(middleware echo.MiddlewareFunc, handler echo.HandlerFunc) http.Handler {
	e := echo.New()
	e.Use(middleware)
	e.GET("/", handler)
	return e
}

func get(h http.Handler, user string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("X-User", user)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func byUser(c *echo.Context) string { return c.Request().Header.Get("X-User") }

func withUser(c *echo.Context, list []weir.Attribute) []weir.Attribute {
	return append(list, weir.Attribute{Name: "user", Value: c.Request().Header.Get("X-User")})
}

func welcome(c *echo.Context) error { return c.String(200, "welcome") }

func TestKeys(t *testing.T) {
	t.Parallel()
	h := router(echolimit.Keys(limiter(t, weir.Sliding(1, time.Minute)), byUser, echolimit.Options{Name: "visits"}), welcome)
	if w := get(h, "ann"); w.Code != 200 || w.Body.String() != "welcome" || w.Header().Get("RateLimit") != `"visits";r=0` {
		t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
	w := get(h, "ann")
	if w.Code != 429 || w.Header().Get("Retry-After") != "60" || !strings.Contains(w.Body.String(), `"violated-policies":["visits"]`) ||
		w.Header().Get("Content-Type") != "application/problem+json" || strings.Contains(w.Body.String(), "welcome") {
		t.Errorf("got %d %v %s, want a denial", w.Code, w.Header(), w.Body)
	}
	if w := get(h, ""); w.Code != 400 || strings.Contains(w.Body.String(), "welcome") {
		t.Errorf("got %d %s for a request without a key, want 400", w.Code, w.Body)
	}
}

// A request keeps its place until its handlers have returned.
func TestInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := router(echolimit.Rules(engine(t, exports), withUser), func(c *echo.Context) error {
			time.Sleep(10 * time.Minute)
			return welcome(c)
		})
		ended := make(chan int)
		go func() { ended <- get(h, "ann").Code }()
		time.Sleep(9 * time.Minute)
		if w := get(h, "ann"); w.Code != 429 {
			t.Errorf("got %d, want 429 while the first is in flight", w.Code)
		}
		if code := <-ended; code != 200 {
			t.Errorf("got %d, want 200", code)
		}
		if w := get(h, "ann"); w.Code != 200 {
			t.Errorf("got %d, want 200 afterwards", w.Code)
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	h := router(echolimit.Keys(limiter(t, weir.Sliding(1, time.Minute)), byUser, echolimit.Options{
		Denied: func(c *echo.Context, call *guard.Call) error { return c.String(418, call.Rule()) },
		Failed: func(c *echo.Context, err error) error {
			return errors.Join(c.String(401, "who?"), errors.New("no user"))
		},
	}), welcome)
	get(h, "ann")
	if w := get(h, "ann"); w.Code != 418 || w.Body.String() != "requests" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := get(h, ""); w.Code != 401 {
		t.Errorf("got %d", w.Code)
	}
	for name, f := range map[string]func(){
		"no limiter": func() { echolimit.Keys(nil, byUser) },
		"no key":     func() { echolimit.Keys(limiter(t, weir.Sliding(1, time.Minute)), nil) },
		"no rules":   func() { echolimit.Rules(nil, withUser) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: got no panic", name)
				}
			}()
			f()
		}()
	}
}

// What a client writes into the header is ignored, and what a trusted proxy writes is the client.
func TestPerIP(t *testing.T) {
	t.Parallel()
	for trusted, want := range map[string]int{"192.0.2.1": 200, "10.0.0.0/8": 429} {
		h := router(echolimit.PerIP(1, time.Minute, trusted), welcome)
		for i, forwarded := range []string{"203.0.113.1", "203.0.113.2"} {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody) // from 192.0.2.1
			r.Header.Set("X-Forwarded-For", forwarded)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if i == 1 && w.Code != want {
				t.Errorf("%s trusted: got %d, want %d", trusted, w.Code, want)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("got no panic for a network that is none")
		}
	}()
	echolimit.PerIP(1, time.Minute, "proxy")
}
