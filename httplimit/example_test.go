package httplimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/httplimit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Each address may post once a minute.
func Example() {
	posts := weir.MustLimiter(weir.Sliding(1, time.Minute))
	defer posts.Close()
	limited := httplimit.Must(httplimit.Keys(posts, httplimit.PeerIP, httplimit.Name("posts")))

	mux := http.NewServeMux()
	mux.Handle("POST /posts", limited.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "posted")
	}))
	for range 2 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/posts", http.NoBody))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "posts";q=1;w=60
	// 429 "posts";q=1;w=60
}

// Rules decide. The router has put the user into the path.
func ExampleRules() {
	set, err := rule.New([]rule.Rule{{
		Name:   "posts-per-user",
		When:   []rule.Condition{{Attribute: "action", Test: rule.Equal("post")}},
		Per:    []string{"user"},
		Quota:  &rule.Quota{Value: 1},
		Window: window.Sliding(time.Hour),
	}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	engine, err := weir.NewEngine(set)
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	limited := httplimit.Must(httplimit.Rules(engine, func(r *http.Request, list []weir.Attribute) []weir.Attribute {
		return append(list, weir.Attributes("action", "post", "user", r.PathValue("user"))...)
	}))

	mux := http.NewServeMux()
	mux.Handle("POST /{user}/posts", limited.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, path := range []string{"/ann/posts", "/ann/posts", "/bob/posts"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, http.NoBody))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /ann/posts 200
	// /ann/posts 429
	// /bob/posts 200
}

// Each client may send a request a minute. Clients come through the proxy at 192.0.2.1, which states their
// addresses. What others state is ignored.
func ExamplePerIP() {
	handler := httplimit.PerIP(1, time.Minute, "192.0.2.1")(http.NotFoundHandler())
	for _, from := range []struct{ peer, forwarded string }{
		{"192.0.2.1:4711", "203.0.113.9"},
		{"192.0.2.1:4711", "203.0.113.8"}, // another client
		{"198.51.100.7:80", "203.0.113.7"},
		{"198.51.100.7:80", "203.0.113.6"}, // the same client, which pretends to be a proxy
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = from.peer
		r.Header.Set("X-Forwarded-For", from.forwarded)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 404
	// 404
	// 404
	// 429
}
