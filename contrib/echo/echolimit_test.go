package echolimit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	echolimit "github.com/weirhq/weir/contrib/echo"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
)

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
	guardtest.Run(t, guardtest.Framework[echo.MiddlewareFunc, *echo.Context]{
		Serve:  serve,
		User:   func(c *echo.Context) string { return c.Request().Header.Get("X-User") },
		Denied: func(c *echo.Context, call *guard.Call) error { return c.String(418, call.Rule()) },
		Failed: func(c *echo.Context, _ error) error { return errors.Join(c.String(401, "who?"), errors.New("no user")) },
		Keys:   echolimit.Keys, Rules: echolimit.Rules, PerIP: echolimit.PerIP,
	})
}
