// Package hertzlimit is middleware for hertz that limits requests.
//
//	posts := weir.MustLimiter(weir.Sliding(5, time.Minute))
//	h := server.Default()
//	h.Use(hertzlimit.Keys(posts, (*app.RequestContext).ClientIP))
//
// It does what package httplimit does, with keys and attributes from an
// *app.RequestContext. Package guard describes the options and the errors.
package hertzlimit

import (
	"context"
	"net/http"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
)

// Options are the options of the middleware. Denied and Failed, if they are set, must
// write the answer. The handlers behind the middleware are not called then.
type Options = guard.Options[*app.RequestContext]

// Keys returns middleware that applies the limit of l to each key. An empty key is
// answered with 400. Keys panics if an argument is nil. At most one Options counts.
func Keys(l *weir.Limiter, key func(*app.RequestContext) string, options ...Options) app.HandlerFunc {
	return handler(guard.Keys(l, key, options...))
}

// Rules returns middleware that decides by the rules of d: an engine, or a client of a
// service. An attribute with an empty value is answered with 400. Rules panics if an
// argument is nil. At most one Options counts. Values may be those of hertz, which
// are valid during the request only: Rules copies them.
func Rules(d guard.Decider, attributes func(*app.RequestContext, []weir.Attribute) []weir.Attribute, options ...Options) app.HandlerFunc {
	if attributes == nil {
		return handler(guard.Rules[*app.RequestContext](d, nil, options...))
	}
	copied := func(c *app.RequestContext, list []weir.Attribute) []weir.Attribute {
		list = attributes(c, list)
		for i := range list {
			list[i].Value = strings.Clone(list[i].Value)
		}
		return list
	}
	return handler(guard.Rules(d, copied, options...))
}

func handler(m *guard.Middleware[*app.RequestContext], err error) app.HandlerFunc {
	if err != nil {
		panic(err)
	}
	o := m.Options()
	return func(ctx context.Context, c *app.RequestContext) {
		call, err := m.Take(ctx, c)
		if err != nil {
			c.Abort()
			if o.Failed == nil {
				p := guard.ProblemOf(err)
				c.Data(p.Status, "application/problem+json", p.Append(nil))
			} else if err := o.Failed(c, err); err != nil {
				_ = c.Error(err)
			}
			return
		}
		// A body that is a stream is written after the handlers have returned.
		defer func() {
			if d := call.Decision(); d != nil && !d.Receipt.IsZero() && c.Response.IsBodyStream() {
				end, finished := call.Detach(), c.Finished()
				go func() {
					<-finished
					end()
				}()
			}
			m.End(call)
		}()
		h := http.Header{}
		o.Headers.Set(h, &call.Limits)
		for name, values := range h {
			c.Header(name, values[0])
		}
		if call.Allowed {
			c.Next(ctx)
			return
		}
		c.Abort()
		if o.Denied == nil {
			c.Data(call.Answer())
		} else if err := o.Denied(c, call); err != nil {
			_ = c.Error(err)
		}
	}
}
