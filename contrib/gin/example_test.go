package ginlimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/weirhq/weir/contrib/gin"
)

// Each client may send one request a minute.
func Example() {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(ginlimit.PerIP(1, time.Minute))
	r.POST("/posts", func(c *gin.Context) { c.String(http.StatusCreated, "posted") })

	for range 2 {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/posts", http.NoBody))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 201 "requests";q=1;w=60
	// 429 "requests";q=1;w=60
}
