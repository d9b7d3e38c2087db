package ginlimit_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/weirhq/weir"
	ginlimit "github.com/weirhq/weir/contrib/gin"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
)

func byUser(c *gin.Context) string { return c.GetHeader("X-User") }

func withUser(c *gin.Context, list []weir.Attribute) []weir.Attribute {
	return append(list, weir.Attribute{Name: "user", Value: byUser(c)})
}

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
	guardtest.Run(t, guardtest.Framework[gin.HandlerFunc]{
		Serve: serve,
		Keys: func(l *weir.Limiter) gin.HandlerFunc {
			return ginlimit.Keys(l, byUser, ginlimit.Options{Name: "visits"})
		},
		Own: func(l *weir.Limiter) gin.HandlerFunc {
			return ginlimit.Keys(l, byUser, ginlimit.Options{
				Denied: func(c *gin.Context, call *guard.Call) error { c.String(418, call.Rule()); return nil },
				Failed: func(c *gin.Context, _ error) error { c.String(401, "who?"); return errors.New("no user") },
			})
		},
		Rules: func(e *weir.Engine) gin.HandlerFunc { return ginlimit.Rules(e, withUser) },
		PerIP: ginlimit.PerIP,
		Nil: []func(*weir.Limiter, *weir.Engine){
			func(*weir.Limiter, *weir.Engine) { ginlimit.Keys(nil, byUser) },
			func(l *weir.Limiter, _ *weir.Engine) { ginlimit.Keys(l, nil) },
			func(*weir.Limiter, *weir.Engine) { ginlimit.Rules(nil, withUser) },
			func(_ *weir.Limiter, e *weir.Engine) { ginlimit.Rules(e, nil) },
		},
	})
}
