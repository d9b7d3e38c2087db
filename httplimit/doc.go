// Package httplimit is middleware for net/http that limits requests. It works with
// every router that takes func(http.Handler) http.Handler, such as chi.
//
//	http.Handle("POST /posts", httplimit.PerIP(5, time.Minute)(handler))
//
// [PerIP] limits each client in one line. [Keys] applies one limit to each key, and the key is a required argument. [Rules]
// decides by a set of rules. Every answer states the limits in its header, in a
// dialect of package headers. A denial is answered with 429 and a problem, or with the
// status and the body of the rules' outcome.
//
// While a store cannot answer, the outage policy of the limiter or of the rules
// decides. The answer then has the header Weir-Degraded with the reason, and the
// observer of the limiter or the engine is called.
//
// The holds of a request end when its answer has been written. If the handler takes over the connection, as for
// a WebSocket, they end when the connection is closed. Until then the middleware renews them.
package httplimit
