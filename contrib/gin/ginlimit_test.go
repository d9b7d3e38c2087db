package ginlimit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/weirhq/weir"
	ginlimit "github.com/weirhq/weir/contrib/gin"
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

func router(middleware gin.HandlerFunc, handler gin.HandlerFunc) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(middleware)
	r.GET("/", handler)
	return r
}

func get(h http.Handler, user string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("X-User", user)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func byUser(c *gin.Context) string { return c.GetHeader("X-User") }

func withUser(c *gin.Context, list []weir.Attribute) []weir.Attribute {
	return append(list, weir.Attribute{Name: "user", Value: c.GetHeader("X-User")})
}

func welcome(c *gin.Context) { c.String(200, "welcome") }

func TestKeys(t *testing.T) {
	t.Parallel()
	h := router(ginlimit.Keys(limiter(t, weir.Sliding(1, time.Minute)), byUser, ginlimit.Options{Name: "visits"}), welcome)
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
		h := router(ginlimit.Rules(engine(t, exports), withUser), func(c *gin.Context) {
			time.Sleep(10 * time.Minute)
			welcome(c)
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
	h := router(ginlimit.Keys(limiter(t, weir.Sliding(1, time.Minute)), byUser, ginlimit.Options{
		Denied: func(c *gin.Context, call *guard.Call) error { c.String(418, call.Rule()); return nil },
		Failed: func(c *gin.Context, err error) error { c.String(401, "who?"); return errors.New("no user") },
	}), welcome)
	get(h, "ann")
	if w := get(h, "ann"); w.Code != 418 || w.Body.String() != "requests" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := get(h, ""); w.Code != 401 {
		t.Errorf("got %d", w.Code)
	}
	for name, f := range map[string]func(){
		"no limiter": func() { ginlimit.Keys(nil, byUser) },
		"no key":     func() { ginlimit.Keys(limiter(t, weir.Sliding(1, time.Minute)), nil) },
		"no rules":   func() { ginlimit.Rules(nil, withUser) },
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
		h := router(ginlimit.PerIP(1, time.Minute, trusted), welcome)
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
	ginlimit.PerIP(1, time.Minute, "proxy")
}
