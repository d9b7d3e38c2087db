// Package echolimit is middleware for echo that limits requests.
//
//	posts := weir.MustLimiter(weir.Sliding(5, time.Minute))
//	e := echo.New()
//	e.Use(echolimit.Keys(posts, (*echo.Context).RealIP))
//
// It does what package httplimit does, with keys and attributes from an *echo.Context.
// Package guard describes the options and the errors.
package echolimit

import (
	"github.com/labstack/echo/v5"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
)

// Options are the options of the middleware. Denied and Failed, if they are set, write
// the answer or return an error for echo's error handler.
type Options = guard.Options[*echo.Context]

// Keys returns middleware that applies the limit of l to each key. An empty key is
// answered with 400. Keys panics if an argument is nil. At most one Options counts.
func Keys(l *weir.Limiter, key func(*echo.Context) string, options ...Options) echo.MiddlewareFunc {
	return middleware(guard.Keys(l, key, options...))
}

// Rules returns middleware that decides by the rules of d: an engine, or a client of a
// service. An attribute with an empty value is answered with 400. Rules panics if an
// argument is nil. At most one Options counts.
func Rules(d guard.Decider, attributes func(*echo.Context, []weir.Attribute) []weir.Attribute, options ...Options) echo.MiddlewareFunc {
	return middleware(guard.Rules(d, attributes, options...))
}

func middleware(m *guard.Middleware[*echo.Context], err error) echo.MiddlewareFunc {
	if err != nil {
		panic(err)
	}
	o := m.Options()
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			call, err := m.Take(c.Request().Context(), c)
			switch {
			case err == nil:
			case o.Failed != nil:
				return o.Failed(c, err)
			default:
				guard.ProblemOf(err).Write(c.Response())
				return nil
			}
			defer m.End(call)
			o.Headers.Set(c.Response().Header(), &call.Limits)
			switch {
			case call.Allowed:
				return next(c)
			case o.Denied != nil:
				return o.Denied(c, call)
			}
			return c.Blob(call.Answer())
		}
	}
}
