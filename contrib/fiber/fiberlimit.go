// Package fiberlimit is middleware for fiber that limits requests.
//
//	posts := weir.MustLimiter(weir.Sliding(5, time.Minute))
//	app := fiber.New()
//	app.Use(fiberlimit.Keys(posts, fiber.Ctx.IP))
//
// It does what package httplimit does, with keys and attributes from a fiber.Ctx.
// Package guard describes the options and the errors.
package fiberlimit

import (
	"net/http"
	"strings"

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
				c.RequestCtx().SetUserValue(endKey{}, ending{call.Detach()})
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

// endKey is the key of an ending among the values of a request.
type endKey struct{}

// ending ends a call when it is closed: fasthttp closes the values of a request after it
// has written the answer.
type ending struct{ end func() }

// Close implements [io.Closer].
func (e ending) Close() error {
	e.end()
	return nil
}
