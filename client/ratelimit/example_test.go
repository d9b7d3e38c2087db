package ratelimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client/ratelimit"
	"github.com/weirhq/weir/headers"
)

// A client waits as long as the server asks for.
func ExampleTransport() {
	begun := time.Now()
	posts := weir.MustLimiter(weir.Sliding(1, time.Second))
	defer posts.Close()
	limit := posts.Limit()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result, err := posts.Allow(r.Context(), "everyone")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		var l headers.Limits
		l.SetResult("posts", &limit, &result)
		headers.Format{}.Set(w.Header(), &l)
		if !result.Allowed {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()

	client := &http.Client{Transport: &ratelimit.Transport{MaxWait: 10 * time.Second}}
	for range 2 {
		answer, err := client.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = answer.Body.Close()
		fmt.Println(answer.StatusCode)
	}
	fmt.Println("waited:", time.Since(begun) >= time.Second)
	// Output:
	// 200
	// 200
	// waited: true
}

// Parse reads the headers of other servers, too.
func ExampleParse() {
	h := http.Header{}
	h.Set("X-RateLimit-Limit", "60")
	h.Set("X-RateLimit-Remaining", "0")
	h.Set("X-RateLimit-Reset", "27")
	l := ratelimit.Parse(h, time.Now())
	fmt.Println(l.Policies[0].Quota, l.Policies[0].Remaining, l.Wait())
	// Output: 60 0 27s
}
