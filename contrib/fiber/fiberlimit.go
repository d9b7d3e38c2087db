// Package fiberlimit is middleware for fiber that limits requests.
//
//	app := fiber.New()
//	app.Use(fiberlimit.PerIP(100, time.Minute))
//
// [Keys] takes a limiter and any key, and [Rules] a set of rules. The package does what package httplimit does, with keys and attributes from a fiber.Ctx.
// Package guard describes the options and the errors.
package fiberlimit

import (
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
)

// Options are the options of the middleware. Denied and Failed, if they are set, write
// the answer or return an error for fiber's error handler.
type Options = guard.Options[fiber.Ctx]

// Keys returns middleware that applies the limit of l to each key. An empty key is
// answered with 400. Keys panics if an argument is nil. At most one Options counts.
func Keys(l *weir.Limiter, key func(fiber.Ctx) string, options ...Options) fiber.Handler {
	return handler(guard.Keys(l, key, options...))
}

// PerIP returns middleware that admits quota requests of each client in each window, and counts
// in this process's memory. A client is the address of the connection; of an IPv6 address the first 64 bits count.
// Behind proxies, trusted are their addresses or CIDR blocks, and a client is the
// last address in X-Forwarded-For that is not one of theirs; other proxies and clients can write the header, and are not
// believed. PerIP panics if the quota, the window or a network is invalid. For a shared store,
// another key or other answers, use [Keys].
func PerIP(quota int64, window time.Duration, trusted ...string) fiber.Handler {
	return handler(guard.PerIP(quota, window, trusted, func(c fiber.Ctx) (peer string, forwarded []string) {
		for _, line := range c.Request().Header.PeekAll(fiber.HeaderXForwardedFor) {
			forwarded = append(forwarded, string(line))
		}
		return c.RequestCtx().RemoteAddr().String(), forwarded
	}))
}

// Rules returns middleware that decides by the rules of d: an engine, or a client of a
// service. An attribute with an empty value is answered with 400. Rules panics if an
// argument is nil. At most one Options counts. Values may be those of fiber, which
// are valid during the request only: Rules copies them.
func Rules(d guard.Decider, attributes func(fiber.Ctx, []weir.Attribute) []weir.Attribute, options ...Options) fiber.Handler {
	if attributes == nil {
		return handler(guard.Rules[fiber.Ctx](d, nil, options...))
	}
	copied := func(c fiber.Ctx, list []weir.Attribute) []weir.Attribute {
		list = attributes(c, list)
		for i := range list {
			list[i].Value = strings.Clone(list[i].Value)
		}
		return list
	}
	return handler(guard.Rules(d, copied, options...))
}

func handler(m *guard.Middleware[fiber.Ctx], err error) fiber.Handler {
	if err != nil {
		panic(err)
	}
	o := m.Options()
	return func(c fiber.Ctx) error {
		call, err := m.Take(c.Context(), c)
		switch {
		case err == nil:
		case o.Failed != nil:
			return o.Failed(c, err)
		default:
			p := guard.ProblemOf(err)
			return send(c, p.Status, "application/problem+json", p.Append(nil))
		}
		// A body that is a stream is written after the handlers have returned.
		defer func() {
			if c.Response().IsBodyStream() {
				e := &ending{call.Detach()}
				c.RequestCtx().SetUserValue(e, e) // one for each middleware of the request
			}
			m.End(call)
		}()
		h := http.Header{}
		o.Headers.Set(h, &call.Limits)
		for name, values := range h {
			c.Set(name, values[0])
		}
		switch {
		case call.Allowed:
			return c.Next()
		case o.Denied != nil:
			return o.Denied(c, call)
		}
		status, mediaType, body := call.Answer()
		return send(c, status, mediaType, body)
	}
}

func send(c fiber.Ctx, status int, mediaType string, body []byte) error {
	c.Set(fiber.HeaderContentType, mediaType)
	return c.Status(status).Send(body)
}

// ending ends a call when it is closed: fasthttp closes the values of a request after it
// has written the answer.
type ending struct{ end func() }

// Close implements [io.Closer].
func (e *ending) Close() error {
	e.end()
	return nil
}
