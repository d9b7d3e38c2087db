package ginlimit_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/weirhq/weir/contrib/gin"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
)

func serve(t *testing.T, middleware gin.HandlerFunc, wait func()) string {
	t.Helper()
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(middleware)
	r.GET("/", func(c *gin.Context) {
		if c.Request.URL.RawQuery == "" {
			c.String(200, "welcome")
			return
		}
		c.String(200, "first")
		c.Writer.Flush()
		wait()
		c.String(200, "second")
	})
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return s.URL
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, guardtest.Framework[gin.HandlerFunc, *gin.Context]{
		Serve:  serve,
		User:   func(c *gin.Context) string { return c.GetHeader("X-User") },
		Denied: func(c *gin.Context, call *guard.Call) error { c.String(418, call.Rule()); return nil },
		Failed: func(c *gin.Context, _ error) error { c.String(401, "who?"); return errors.New("no user") },
		Keys:   ginlimit.Keys, Rules: ginlimit.Rules, PerIP: ginlimit.PerIP,
	})
}
