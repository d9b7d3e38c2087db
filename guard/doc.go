// Package guard decides the calls of a server by a [weir.Limiter] or a
// [Decider], which is an engine or a client of a service. The middleware for net/http, gRPC and
// the web frameworks is built on it: see packages httplimit and grpclimit, and the modules below
// contrib. Use it to write middleware for another framework.
//
// [Middleware] decides the calls of one framework. A [Call] is one call: it has the
// answer, and it renews the holds of the call ([rule.Rule.Hold], [window.Held]) until
// [Middleware.End].
package guard
