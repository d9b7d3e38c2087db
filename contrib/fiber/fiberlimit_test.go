package fiberlimit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/weirhq/weir"
	fiberlimit "github.com/weirhq/weir/contrib/fiber"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
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

// settles gets an element for each settle.
type settles chan struct{}

func (s settles) Decided(_ context.Context, v store.Verb, _ *weir.Decision, _ time.Duration) {
	if v == store.Settle {
		s <- struct{}{}
	}
}
func (s settles) Failed(context.Context, store.Verb, error) {}
func (s settles) Outage(context.Context, store.Verb, error) {}

// serve serves an app on a free port and returns its URL.
func serve(t *testing.T, middleware, handler fiber.Handler) string {
	t.Helper()
	app := fiber.New()
	app.Use(middleware)
	app.Get("/", handler)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
	t.Cleanup(func() { app.Shutdown() })
	return "http://" + l.Addr().String()
}

// get sends a request, and returns the answer and its body.
func get(t *testing.T, url, user string) (*http.Response, string) {
	t.Helper()
	answer := open(t, url, user)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// open sends a request and leaves the body of the answer open.
func open(t *testing.T, url, user string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", user)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func byUser(c fiber.Ctx) string { return c.Get("X-User") }

func withUser(c fiber.Ctx, list []weir.Attribute) []weir.Attribute {
	return append(list, weir.Attribute{Name: "user", Value: c.Get("X-User")})
}

func welcome(c fiber.Ctx) error { return c.SendString("welcome") }

func TestKeys(t *testing.T) {
	t.Parallel()
	url := serve(t, fiberlimit.Keys(limiter(t, weir.Sliding(1, time.Minute)), byUser, fiberlimit.Options{Name: "visits"}), welcome)
	if w, body := get(t, url, "ann"); w.StatusCode != 200 || body != "welcome" || w.Header.Get("RateLimit") != `"visits";r=0` {
		t.Errorf("got %d %v %s", w.StatusCode, w.Header, body)
	}
	w, body := get(t, url, "ann")
	if w.StatusCode != 429 || w.Header.Get("Retry-After") != "60" || !strings.Contains(body, `"violated-policies":["visits"]`) ||
		w.Header.Get("Content-Type") != "application/problem+json" || strings.Contains(body, "welcome") {
		t.Errorf("got %d %v %s, want a denial", w.StatusCode, w.Header, body)
	}
	if w, body := get(t, url, ""); w.StatusCode != 400 || strings.Contains(body, "welcome") {
		t.Errorf("got %d %s for a request without a key, want 400", w.StatusCode, body)
	}
}

// A request keeps its place until its body has been written, which happens after the
// handlers have returned if the body is a stream.
func TestInFlight(t *testing.T) {
	t.Parallel()
	settled, goOn := make(settles, 10), make(chan struct{})
	e := engine(t, exports, weir.WithObserver(settled))
	url := serve(t, fiberlimit.Rules(e, withUser), func(c fiber.Ctx) error {
		if c.Query("stream") == "" {
			return welcome(c)
		}
		return c.SendStreamWriter(func(w *bufio.Writer) {
			fmt.Fprint(w, "first")
			if err := w.Flush(); err != nil {
				t.Error(err)
			}
			<-goOn
			fmt.Fprint(w, "second")
		})
	})
	if _, body := get(t, url, "ann"); body != "welcome" {
		t.Errorf("got %s", body)
	}
	<-settled
	answer := open(t, url+"?stream=1", "ann")
	defer answer.Body.Close()
	if _, err := io.ReadFull(answer.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if w, _ := get(t, url, "ann"); w.StatusCode != 429 {
		t.Errorf("got %d, want 429 while the body is being written", w.StatusCode)
	}
	close(goOn)
	if rest, err := io.ReadAll(answer.Body); string(rest) != "second" || err != nil {
		t.Errorf("got %s %v", rest, err)
	}
	<-settled
	if w, _ := get(t, url, "ann"); w.StatusCode != 200 {
		t.Errorf("got %d, want 200 afterwards", w.StatusCode)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	url := serve(t, fiberlimit.Keys(limiter(t, weir.Sliding(1, time.Minute)), byUser, fiberlimit.Options{
		Denied: func(c fiber.Ctx, call *guard.Call) error { return c.Status(418).SendString(call.Rule()) },
		Failed: func(fiber.Ctx, error) error { return fiber.ErrUnauthorized },
	}), welcome)
	get(t, url, "ann")
	if w, body := get(t, url, "ann"); w.StatusCode != 418 || body != "requests" {
		t.Errorf("got %d %s", w.StatusCode, body)
	}
	if w, _ := get(t, url, ""); w.StatusCode != 401 {
		t.Errorf("got %d", w.StatusCode)
	}
	for name, f := range map[string]func(){
		"no limiter":    func() { fiberlimit.Keys(nil, byUser) },
		"no attributes": func() { fiberlimit.Rules(engine(t, exports), nil) },
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
	for trusted, want := range map[string]int{"127.0.0.1": 200, "10.0.0.0/8": 429} {
		url := serve(t, fiberlimit.PerIP(1, time.Minute, trusted), func(c fiber.Ctx) error { return c.SendStatus(200) })
		for i, forwarded := range []string{"203.0.113.1", "203.0.113.2"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Forwarded-For", forwarded)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if i == 1 && answer.StatusCode != want {
				t.Errorf("%s trusted: got %d, want %d", trusted, answer.StatusCode, want)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("got no panic for a network that is none")
		}
	}()
	fiberlimit.PerIP(1, time.Minute, "proxy")
}
