package hertzlimit_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/ut"

	hertzlimit "github.com/weirhq/weir/contrib/hertz"
)

// Each client may send one request a minute.
func Example() {
	h := server.New()
	h.Use(hertzlimit.PerIP(1, time.Minute))
	h.POST("/posts", func(_ context.Context, c *app.RequestContext) { c.Status(http.StatusCreated) })

	for range 2 {
		answer := ut.PerformRequest(h.Engine, http.MethodPost, "/posts", nil).Result()
		fmt.Println(answer.StatusCode(), string(answer.Header.Peek("RateLimit-Policy")))
	}
	// Output:
	// 201 "requests";q=1;w=60
	// 429 "requests";q=1;w=60
}
