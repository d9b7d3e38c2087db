// Package echolimit is middleware for echo that limits requests.
//
//	e := echo.New()
//	e.Use(echolimit.PerIP(100, time.Minute))
//
// [Keys] takes a limiter and any key, and [Rules] a set of rules. The package does what package httplimit does, with keys and attributes from an *echo.Context.
// Package guard describes the options and the errors.
package echolimit

import (
	"time"

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

// PerIP returns middleware that admits quota requests of each client in each window, and counts
// in this process's memory. A client is the address of the connection; of an IPv6 address the first 64 bits count.
// Behind proxies, trusted are their addresses or CIDR blocks, and a client is the
// last address in X-Forwarded-For that is not one of theirs; other proxies and clients can write the header, and are not
// believed. PerIP panics if the quota, the window or a network is invalid. For a shared store,
// another key or other answers, use [Keys].
func PerIP(quota int64, window time.Duration, trusted ...string) echo.MiddlewareFunc {
	return middleware(guard.PerIP(quota, window, trusted, func(c *echo.Context) (peer string, forwarded []string) {
		return c.Request().RemoteAddr, c.Request().Header["X-Forwarded-For"]
	}))
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
