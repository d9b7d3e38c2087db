package echolimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v5"

	echolimit "github.com/weirhq/weir/contrib/echo"
)

// Each client may send one request a minute.
func Example() {
	e := echo.New()
	e.Use(echolimit.PerIP(1, time.Minute))
	e.POST("/posts", func(c *echo.Context) error { return c.String(http.StatusCreated, "posted") })

	for range 2 {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/posts", http.NoBody))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 201 "requests";q=1;w=60
	// 429 "requests";q=1;w=60
}
