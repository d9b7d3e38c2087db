package echolimit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/weirhq/weir"
	echolimit "github.com/weirhq/weir/contrib/echo"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
)

func byUser(c *echo.Context) string { return c.Request().Header.Get("X-User") }

func withUser(c *echo.Context, list []weir.Attribute) []weir.Attribute {
	return append(list, weir.Attribute{Name: "user", Value: byUser(c)})
}

func serve(t *testing.T, middleware echo.MiddlewareFunc, wait func()) string {
	t.Helper()
	e := echo.New()
	e.Use(middleware)
	e.GET("/", func(c *echo.Context) error {
		if c.QueryString() == "" {
			return c.String(200, "welcome")
		}
		err := errors.Join(c.String(200, "first"), http.NewResponseController(c.Response()).Flush())
		wait()
		return errors.Join(err, c.String(200, "second"))
	})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s.URL
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, guardtest.Framework[echo.MiddlewareFunc]{
		Serve: serve,
		Keys: func(l *weir.Limiter) echo.MiddlewareFunc {
			return echolimit.Keys(l, byUser, echolimit.Options{Name: "visits"})
		},
		Own: func(l *weir.Limiter) echo.MiddlewareFunc {
			return echolimit.Keys(l, byUser, echolimit.Options{
				Denied: func(c *echo.Context, call *guard.Call) error { return c.String(418, call.Rule()) },
				Failed: func(c *echo.Context, _ error) error { return errors.Join(c.String(401, "who?"), errors.New("no user")) },
			})
		},
		Rules: func(e *weir.Engine) echo.MiddlewareFunc { return echolimit.Rules(e, withUser) },
		PerIP: echolimit.PerIP,
		Nil: []func(*weir.Limiter, *weir.Engine){
			func(*weir.Limiter, *weir.Engine) { echolimit.Keys(nil, byUser) },
			func(l *weir.Limiter, _ *weir.Engine) { echolimit.Keys(l, nil) },
			func(*weir.Limiter, *weir.Engine) { echolimit.Rules(nil, withUser) },
			func(_ *weir.Limiter, e *weir.Engine) { echolimit.Rules(e, nil) },
		},
	})
}
