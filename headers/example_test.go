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
			headers.DenialBy("posts", false).Write(w)
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
