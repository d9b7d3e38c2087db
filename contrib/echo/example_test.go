package echolimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/weirhq/weir"
	echolimit "github.com/weirhq/weir/contrib/echo"
)

// Each client may send one request a minute.
func Example() {
	posts := weir.MustLimiter(weir.Sliding(1, time.Minute))
	e := echo.New()
	e.Use(echolimit.Keys(posts, (*echo.Context).RealIP))
	e.POST("/posts", func(c *echo.Context) error { return c.String(http.StatusCreated, "posted") })

	for range 2 {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/posts", http.NoBody))
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 201 "requests";r=0
	// 429 "requests";r=0;t=60
}
