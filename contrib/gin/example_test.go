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
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 201 "requests";r=0
	// 429 "requests";r=0;t=60
}
