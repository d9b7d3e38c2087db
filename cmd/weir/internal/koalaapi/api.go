// Package koalaapi answers koala's calls, so that a site can replace koala by weir
// and change nothing else. Browse is a check, update a record, and browse with
// `_writeThrough` one take. The engine holds the rules; a rule's Code is its
// return code. docs/koala.md describes the move.
package koalaapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// API answers koala's calls, and any other path with `not found`. [New] makes
// one. It is safe for concurrent use.
type API struct {
	spaces *namespace.Set
	config Config
	tables tables
}

// Config configures an [API]. The zero value is valid.
type Config struct {
	// Context is the context of all decisions, which can have the time-out of a
	// store. The context of an HTTP request is not used: a client may close its side of
	// the connection after the request and wait for the answer, and net/http reports
	// such a client as gone. Default: context.Background().
	Context context.Context

	// Ping returns an error if the store is unavailable. A nil Ping means that the
	// store is always available.
	Ping func(context.Context) error

	// Auth authenticates callers. Nil admits everyone.
	Auth *access.Authenticator

	// Resources limits concurrent work. Nil has no limits.
	Resources *access.ResourceLimits
}

// New returns koala's API of the namespaces in spaces.
func New(spaces *namespace.Set, config Config) *API {
	if config.Context == nil {
		config.Context = context.Background()
	}
	return &API{spaces: spaces, config: config}
}

// reply is the answer to a call. All answers are text.
type reply struct {
	status int // 0 means 200
	body   []byte
}

// call answers one path. The reply is valid until x is used again.
type call func(a *API, x *exchange, r *http.Request) reply

// route is a call, and the scopes that a caller needs for it.
type route struct {
	need access.Scope
	call call
}

// routes lists the calls of a namespace by path. As in koala, the method does not
// matter.
var routes = map[string]route{
	"rule/browse":          {access.Decide, (*API).browse},
	"rule/update":          {access.Record, (*API).update},
	"rule/browse_complete": {access.Decide, (*API).complete},
	"multi/browse":         {access.Decide, (*API).multi},
	"rule/feedback":        {access.Record, (*API).feedback},
}

// route returns the call at path, or nil if there is none, and sets the namespace
// of x. It returns an error if the authenticator refuses the caller.
func (a *API) route(x *exchange, path string, r *http.Request) (call, error) {
	asked, path, err := namespace.Cut(path)
	if err != nil {
		return nil, err
	}
	path = strings.Trim(path, "/")
	if to, ok := routes[path]; ok {
		if asked, err = namespace.Asked(asked, r.Header[namespace.Header]); err != nil {
			return nil, err
		}
		var caller *access.Holder
		if a.config.Auth != nil {
			if caller, err = a.config.Auth.Enter(r, to.need); err != nil {
				return nil, err
			}
		}
		x.space, err = a.spaces.Choose(a.config.Auth, caller, asked)
		return to.call, err
	}
	if path == "monitor/alive" { // a health check
		return (*API).alive, nil
	}
	return nil, nil
}

// refused answers a caller that an authenticator refuses, or that asks for a namespace that
// there is not.
func refused(x *exchange, h http.Header, err error) reply {
	var no *access.Refusal
	if !errors.As(err, &no) {
		return reply{answer.ProblemOf(err).Status, problem(x.out, `{"errno": -3, "errmsg": `, err.Error())}
	}
	if no.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((no.RetryAfter+time.Second-1)/time.Second), 10))
		return reply{http.StatusTooManyRequests, problem(x.out, `{"errno": -3, "errmsg": `, no.Detail)}
	}
	if no.Reason == access.Missing || no.Reason == access.Unknown {
		return reply{http.StatusForbidden, []byte(`{"errno": -3, "errmsg": "wrong token"}`)}
	}
	return reply{http.StatusForbidden, problem(x.out, `{"errno": -3, "errmsg": `, no.Detail)}
}

// ServeHTTP answers one call.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchanges.Get().(*exchange)
	defer x.free()
	path, query, _ := strings.Cut(r.RequestURI, "?") // as sent: koala does not decode paths
	x.read(query)
	c, err := a.route(x, path, r)
	switch {
	case err != nil:
		x.write(w, r, refused(x, w.Header(), err))
	case c != nil:
		if err := a.config.Resources.Begin(); err != nil {
			w.Header().Set("Retry-After", "1")
			x.write(w, r, reply{http.StatusServiceUnavailable, problem(x.out, `{"errno": -5, "errmsg": `, err.Error())})
			return
		}
		defer a.config.Resources.End()
		x.write(w, r, c(a, x, r))
	default:
		x.write(w, r, reply{http.StatusNotFound, []byte("not found")})
	}
}
