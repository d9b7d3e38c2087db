// Package ginlimit is middleware for gin that limits requests.
//
//	r := gin.Default()
//	r.Use(ginlimit.PerIP(100, time.Minute))
//
// [Keys] takes a limiter and any key, and [Rules] a set of rules. Do not take ClientIP of gin as the key: unless the
// router has SetTrustedProxies, it believes what a client writes into a header. The package does what package httplimit does, with keys and attributes from a *gin.Context.
// Package guard describes the options and the errors.
package ginlimit

import (
	"time"

	"github.com/gin-gonic/gin"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
)

// Options are the options of the middleware. Denied and Failed, if they are set, must
// write the answer. The handlers behind the middleware are not called then.
type Options = guard.Options[*gin.Context]

// Keys returns middleware that applies the limit of l to each key. An empty key is
// answered with 400. Keys panics if an argument is nil. At most one Options counts.
func Keys(l *weir.Limiter, key func(*gin.Context) string, options ...Options) gin.HandlerFunc {
	return handler(guard.Keys(l, key, options...))
}

// PerIP returns middleware that admits quota requests of each client in each window, and counts
// in this process's memory. A client is the address of the connection; of an IPv6 address the first 64 bits count.
// Behind proxies, trusted are their addresses or CIDR blocks, and a client is the
// last address in X-Forwarded-For that is not one of theirs; other proxies and clients can write the header, and are not
// believed. PerIP panics if the quota, the window or a network is invalid. For a shared store,
// another key or other answers, use [Keys].
func PerIP(quota int64, window time.Duration, trusted ...string) gin.HandlerFunc {
	return handler(guard.PerIP(quota, window, trusted, func(c *gin.Context) (peer string, forwarded []string) {
		return c.Request.RemoteAddr, c.Request.Header["X-Forwarded-For"]
	}))
}

// Rules returns middleware that decides by the rules of d: an engine, or a client of a
// service. An attribute with an empty value is answered with 400. Rules panics if an
// argument is nil. At most one Options counts.
func Rules(d guard.Decider, attributes func(*gin.Context, []weir.Attribute) []weir.Attribute, options ...Options) gin.HandlerFunc {
	return handler(guard.Rules(d, attributes, options...))
}

func handler(m *guard.Middleware[*gin.Context], err error) gin.HandlerFunc {
	if err != nil {
		panic(err)
	}
	o := m.Options()
	return func(c *gin.Context) {
		call, err := m.Take(c.Request.Context(), c)
		if err != nil {
			c.Abort()
			if o.Failed == nil {
				guard.ProblemOf(err).Write(c.Writer)
			} else if err := o.Failed(c, err); err != nil {
				_ = c.Error(err)
			}
			return
		}
		defer m.End(call)
		o.Headers.Set(c.Writer.Header(), &call.Limits)
		if call.Allowed {
			c.Next()
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
