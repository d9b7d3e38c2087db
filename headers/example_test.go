package headers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
)

// A handler tells its callers what a limiter leaves them.
func ExampleFormat_Set() {
	posts := weir.MustLimiter(weir.Sliding(1, time.Hour))
	defer posts.Close()
	limit, format := posts.Limit(), headers.Format{Dialect: headers.Draft}

	handler := func(w http.ResponseWriter, r *http.Request) {
		result, err := posts.Allow(r.Context(), r.PathValue("user"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		var l headers.Limits
		l.SetResult("posts", &limit, &result)
		format.Set(w.Header(), &l)
		if !result.Allowed {
			p := headers.Problem{Type: headers.QuotaExceeded, Detail: "one post an hour", Policies: []string{"posts"}}
			p.Write(w)
		}
	}
	for range 2 {
		w := httptest.NewRecorder()
		handler(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
		fmt.Println(w.Code, w.Header().Get("RateLimit"), w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "posts";r=0 "posts";q=1;w=3600
	// 429 "posts";r=0;t=3600 "posts";q=1;w=3600
}

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

	client := &http.Client{Transport: &headers.Transport{MaxWait: 10 * time.Second}}
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
	l := headers.Parse(h, time.Now())
	fmt.Println(l.Policies[0].Quota, l.Policies[0].Remaining, l.Wait())
	// Output: 60 0 27s
}
