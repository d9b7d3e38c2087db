// Package hertzlimit is middleware for hertz that limits requests.
//
//	h := server.Default()
//	h.Use(hertzlimit.PerIP(100, time.Minute))
//
// [Keys] takes a limiter and any key, and [Rules] a set of rules. Do not take ClientIP of hertz as the key: unless
// SetClientIPFunc names the proxies, it believes what a client writes into a header. The package does what package httplimit does, with keys and attributes from an
// *app.RequestContext. Package guard describes the options and the errors.
package hertzlimit

import (
	"context"
	"net/http"
	"strings"
	"time"

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

// PerIP returns middleware that admits quota requests of each client in each window, and counts
// in this process's memory. A client is the address of the connection; of an IPv6 address the first 64 bits count.
// Behind proxies, trusted are their addresses or CIDR blocks, and a client is the
// last address in X-Forwarded-For that is not one of theirs; other proxies and clients can write the header, and are not
// believed. PerIP panics if the quota, the window or a network is invalid. For a shared store,
// another key or other answers, use [Keys].
func PerIP(quota int64, window time.Duration, trusted ...string) app.HandlerFunc {
	return handler(guard.PerIP(quota, window, trusted, func(c *app.RequestContext) (peer string, forwarded []string) {
		for _, line := range c.Request.Header.PeekAll("X-Forwarded-For") {
			forwarded = append(forwarded, string(line))
		}
		return c.RemoteAddr().String(), forwarded
	}))
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
