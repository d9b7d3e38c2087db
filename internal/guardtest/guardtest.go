// Package guardtest has the tests that the middleware of every framework must pass, and engines and limiters for them.
package guardtest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Framework is the middleware M of one framework, whose handlers get a C.
type Framework[M, C any] struct {
	// Serve serves GET / behind the middleware until the test ends, and returns the URL. The
	// answer is "welcome" or, if the query is not empty, "first", flushed, and "second" when
	// wait has returned.
	Serve func(t *testing.T, middleware M, wait func()) (url string)

	// User returns the header X-User of a request.
	User func(C) string

	// Denied answers with the status 418 and the name of the rule, and Failed with 401.
	Denied func(C, *guard.Call) error
	Failed func(C, error) error

	// The functions of the package.
	Keys  func(*weir.Limiter, func(C) string, ...guard.Options[C]) M
	Rules func(guard.Decider, func(C, []weir.Attribute) []weir.Attribute, ...guard.Options[C]) M
	PerIP func(quota int64, window time.Duration, trusted ...string) M
}

// Run runs the tests.
func Run[M, C any](t *testing.T, f Framework[M, C]) {
	t.Run("keys", func(t *testing.T) { t.Parallel(); f.keys(t) })
	t.Run("in flight", func(t *testing.T) { t.Parallel(); f.inFlight(t) })
	t.Run("options", func(t *testing.T) { t.Parallel(); f.options(t) })
	t.Run("per IP", func(t *testing.T) { t.Parallel(); f.perIP(t) })
}

// Limiter returns a limiter that is closed when the test ends.
func Limiter(t testing.TB, l weir.Limit, options ...weir.LimiterOption) *weir.Limiter {
	t.Helper()
	m, err := weir.NewLimiter(l, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Engine returns an engine that is closed when the test ends.
func Engine(t testing.TB, rules []rule.Rule, outcomes map[string]rule.Outcome, options ...weir.Option) *weir.Engine {
	t.Helper()
	set, err := rule.New(rules, outcomes)
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

// engine returns an engine that admits one request of each user at a time. settled gets
// an element for each settle.
func engine(t *testing.T) (e *weir.Engine, settled Settles) {
	t.Helper()
	settled = make(Settles, 10)
	rules := []rule.Rule{{Name: "exports", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Held(30 * time.Second)}}
	return Engine(t, rules, nil, weir.WithObserver(settled)), settled
}

// Settles is an observer that gets an element for each settle.
type Settles chan struct{}

// Decided implements [weir.Observer].
func (s Settles) Decided(_ context.Context, v store.Verb, _ *weir.Decision, _ time.Duration) {
	if v == store.Settle {
		s <- struct{}{}
	}
}

// Failed implements [weir.Observer].
func (s Settles) Failed(context.Context, store.Verb, error) {}

// Outage implements [weir.Observer].
func (s Settles) Outage(context.Context, store.Verb, error) {}

// open sends a request with header fields, and leaves the body of the answer open.
func open(t *testing.T, url string, fields ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// get sends a request, and returns the status, the header and the body of the answer.
func get(t *testing.T, url string, fields ...string) (status int, header http.Header, text string) {
	t.Helper()
	answer := open(t, url, fields...)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(body)
}

func (f *Framework[M, C]) keys(t *testing.T) {
	url := f.Serve(t, f.Keys(Limiter(t, weir.Sliding(1, time.Minute)), f.User, guard.Options[C]{Name: "visits"}), nil)
	if status, header, body := get(t, url, "X-User", "ann"); status != 200 || body != "welcome" || header.Get("RateLimit") != `"visits";r=0` {
		t.Errorf("got %d %v %s", status, header, body)
	}
	status, header, body := get(t, url, "X-User", "ann")
	if status != http.StatusTooManyRequests || header.Get("Retry-After") != "60" || !strings.Contains(body, `"violated-policies":["visits"]`) ||
		header.Get("Content-Type") != "application/problem+json" || strings.Contains(body, "welcome") {
		t.Errorf("got %d %v %s, want a denial", status, header, body)
	}
	if status, _, body := get(t, url); status != 400 || strings.Contains(body, "welcome") {
		t.Errorf("got %d %s for a request without a key, want 400", status, body)
	}
}

func (f *Framework[M, C]) attributes(c C, list []weir.Attribute) []weir.Attribute {
	return append(list, weir.Attribute{Name: "user", Value: f.User(c)})
}

// A request keeps its place until its body has been written, which can happen after the
// handlers have returned.
func (f *Framework[M, C]) inFlight(t *testing.T) {
	e, settled := engine(t)
	goOn := make(chan struct{})
	url := f.Serve(t, f.Rules(e, f.attributes), func() { <-goOn })
	if _, _, body := get(t, url, "X-User", "ann"); body != "welcome" {
		t.Errorf("got %s", body)
	}
	<-settled
	answer := open(t, url+"?stream=1", "X-User", "ann")
	defer answer.Body.Close()
	if _, err := io.ReadFull(answer.Body, make([]byte, len("first"))); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := get(t, url, "X-User", "ann"); status != 429 {
		t.Errorf("got %d, want 429 while the body is being written", status)
	}
	close(goOn)
	if rest, err := io.ReadAll(answer.Body); string(rest) != "second" || err != nil {
		t.Errorf("got %s %v", rest, err)
	}
	<-settled
	if status, _, _ := get(t, url, "X-User", "ann"); status != 200 {
		t.Errorf("got %d, want 200 afterwards", status)
	}
}

func (f *Framework[M, C]) options(t *testing.T) {
	url := f.Serve(t, f.Keys(Limiter(t, weir.Sliding(1, time.Minute)), f.User, guard.Options[C]{Denied: f.Denied, Failed: f.Failed}), nil)
	get(t, url, "X-User", "ann")
	if status, _, body := get(t, url, "X-User", "ann"); status != 418 || body != "requests" {
		t.Errorf("got %d %s", status, body)
	}
	if status, _, _ := get(t, url); status != 401 {
		t.Errorf("got %d", status)
	}
	e, _ := engine(t)
	panics(t, "no limiter", func() { f.Keys(nil, f.User) })
	panics(t, "no key", func() { f.Keys(Limiter(t, weir.Sliding(1, time.Minute)), nil) })
	panics(t, "no engine", func() { f.Rules(nil, f.attributes) })
	panics(t, "no attributes", func() { f.Rules(e, nil) })
}

// What a client writes into the header is ignored, and what a trusted proxy writes is the client.
func (f *Framework[M, C]) perIP(t *testing.T) {
	for trusted, want := range map[string]int{"127.0.0.1": 200, "10.0.0.0/8": 429} {
		url := f.Serve(t, f.PerIP(1, time.Minute, trusted), nil)
		get(t, url, "X-Forwarded-For", "203.0.113.1")
		if status, _, _ := get(t, url, "X-Forwarded-For", "203.0.113.2"); status != want {
			t.Errorf("%s trusted: got %d, want %d", trusted, status, want)
		}
	}
	panics(t, "a network that is none", func() { f.PerIP(1, time.Minute, "proxy") })
}

func panics(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: got no panic", what)
		}
	}()
	f()
}
