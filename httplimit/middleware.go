package httplimit

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
)

// Middleware limits requests. Make one with [Keys] or [Rules]. It is safe for
// concurrent use.
type Middleware struct {
	guard  *guard.Middleware[*http.Request]
	denied func(http.ResponseWriter, *http.Request, *guard.Call)
	failed func(http.ResponseWriter, *http.Request, error)
}

// Keys returns middleware that applies the limit of l to each key. key returns the key of a
// request, such as a user's name; an empty key is an error: see [OnError]. The errors are
// nil arguments and wrong options.
func Keys(l *weir.Limiter, key func(*http.Request) string, options ...Option) (*Middleware, error) {
	if key == nil {
		return nil, errors.New("httplimit: key: nil: want a function that returns the key of a request, such as httplimit.PeerIP")
	}
	o := apply(options)
	g, err := guard.Keys(l, key, o.guard)
	return o.middleware(g, err)
}

// Rules returns middleware that decides by the rules of d: an engine, or a client of a
// service. attributes appends the attributes of a request to a list. It leaves out those
// that the request lacks; an attribute with an empty value is an error: see [OnError].
// The errors are nil arguments and wrong options.
func Rules(d guard.Decider, attributes func(*http.Request, []weir.Attribute) []weir.Attribute, options ...Option) (*Middleware, error) {
	if attributes == nil {
		return nil, errors.New("httplimit: attributes: nil: want a function that appends the attributes of a request")
	}
	o := apply(options)
	g, err := guard.Rules(d, attributes, o.guard)
	return o.middleware(g, err)
}

// PerIP returns middleware that admits quota requests of each client in each window, and counts in this
// process's memory:
//
//	router.Use(httplimit.PerIP(100, time.Minute))
//
// A client is the address of the connection, as [PeerIP] returns it. Behind proxies, trusted
// are their addresses or CIDR blocks, and a client is the address that [ForwardedIP] finds; behind a
// proxy that is not in trusted all clients count as one. PerIP panics if the quota, the window or a network is invalid. For a
// shared store, another key or other answers, use [Keys].
func PerIP(quota int64, window time.Duration, trusted ...string) func(http.Handler) http.Handler {
	g, err := guard.PerIP(quota, window, trusted, func(r *http.Request) (peer string, forwarded []string) {
		return r.RemoteAddr, r.Header["X-Forwarded-For"]
	})
	return Must(apply(nil).middleware(g, err)).Handler
}

func (o *options) middleware(g *guard.Middleware[*http.Request], err error) (*Middleware, error) {
	if err != nil {
		return nil, err
	}
	return &Middleware{g, o.denied, o.failed}, nil
}

// Must returns m, or panics with err. It is for middleware that is written in the
// program.
func Must(m *Middleware, err error) *Middleware {
	if err != nil {
		panic(err)
	}
	return m
}

// Handler returns next behind the limit.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call, err := m.guard.Take(r.Context(), r)
		if err != nil {
			m.failed(w, r, err)
			return
		}
		m.guard.Options().Headers.Set(w.Header(), &call.Limits)
		switch {
		case !call.Allowed:
			defer m.guard.End(call)
			m.denied(w, r, call)
		case holds(call):
			defer m.guard.End(call)
			hold(call, next, w, r)
		default:
			m.guard.End(call)
			next.ServeHTTP(w, r)
		}
	})
}

// HandlerFunc returns next behind the limit.
func (m *Middleware) HandlerFunc(next http.HandlerFunc) http.Handler { return m.Handler(next) }

// answerDenied answers a denied request with the body of the outcome, or with a problem.
// It is the default of [OnDenied].
func answerDenied(w http.ResponseWriter, _ *http.Request, c *guard.Call) {
	status, mediaType, body := c.Answer()
	w.Header()["Content-Type"] = []string{mediaType}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller has gone if this fails
}

// answerFailed answers a request that could not be decided with a problem. It is the
// default of [OnError].
func answerFailed(w http.ResponseWriter, _ *http.Request, err error) {
	guard.ProblemOf(err).Write(w)
}
