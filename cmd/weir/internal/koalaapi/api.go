// Package koalaapi answers koala's calls, so that a site can replace koala by weir
// and change nothing else. Browse is a check, update a record, and browse with
// `_writeThrough` one take. The engine holds the rules; a rule's Code is its
// return code. docs/koala.md describes the move.
package koalaapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/fault"
)

// API answers koala's calls, and any other path with `not found`. [New] makes
// one. It is safe for concurrent use.
type API struct {
	spaces *namespace.Set
	config Config
	tally  *tally
	tables tables
}

// Config holds what an API needs beside its namespaces. The zero value is valid.
type Config struct {
	// Context is the context of all decisions, whose time-out a store can have in
	// it. That of an HTTP request does not matter: a client may close its side of
	// the connection after the request and wait for the answer, and net/http
	// reports such a client as gone. Default: context.Background().
	Context context.Context

	// Ping returns an error if the store cannot be reached. A nil Ping stands
	// for a store that always can.
	Ping func(context.Context) error

	// Rewrite puts the text of another rule file in force. It returns a
	// [*RulesError] if the text is wrong; any other error is a failure of this
	// program. The call rule/rewrite exists only with Rewrite and Rewriters.
	Rewrite func(text []byte) error

	// Auth says who may call. Nil admits everyone.
	Auth *access.Authenticator

	// Resources limits what is done at the same time. Nil has no limits.
	Resources *access.ResourceLimits

	// Rewriters says who may rewrite the rules, whatever Auth says. Nil: no
	// caller may.
	Rewriters *access.Authenticator
}

// New returns koala's API of the namespaces in spaces. Close frees its statistics.
func New(spaces *namespace.Set, config Config) (*API, error) {
	if config.Context == nil {
		config.Context = context.Background()
	}
	t, err := newTally()
	if err != nil {
		return nil, err
	}
	return &API{spaces: spaces, config: config, tally: t}, nil
}

// Close frees the statistics. It must follow the last call.
func (a *API) Close() error { return a.tally.close() }

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

// routes lists the calls by path, but for rule/rewrite. As in koala, the method
// does not matter.
var routes = map[string]route{
	"rule/browse":          {access.Decide, (*API).browse},
	"rule/update":          {access.Record, (*API).update},
	"rule/browse_complete": {access.Decide, (*API).complete},
	"multi/browse":         {access.Decide, (*API).multi},
	"rule/feedback":        {access.Record, (*API).feedback},
	"rule/value":           {access.Read, (*API).value},
	"dump/counter":         {access.Read, (*API).dumpCounter},
	"dump/policy":          {access.Read, (*API).dumpPolicy},
}

// route returns the call at path, or nil if there is none, and sets the namespace
// of x. It asks a's authenticators whether the caller may make the call, and otherwise
// returns the error.
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
			if caller, err = a.config.Auth.Authenticate(access.CredentialsOf(r), to.need); err != nil {
				return nil, err
			}
		}
		x.space, err = a.spaces.Choose(a.config.Auth, caller, asked)
		return to.call, err
	}
	switch {
	case path == "monitor/alive":
		return (*API).alive, nil // a health check
	case path == "rule/rewrite" && a.config.Rewrite != nil && a.config.Rewriters != nil:
		caller, err := a.config.Rewriters.Authenticate(access.CredentialsOf(r), access.Admin)
		if err != nil {
			return nil, err
		}
		if x.space, err = a.spaces.Choose(a.config.Rewriters, caller, asked); err == nil && x.space.Name() != namespace.Default {
			err = fault.Newf("namespace", "calls rewrite the rules of the namespace default only")
		}
		return (*API).rewrite, err
	}
	return nil, nil
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
