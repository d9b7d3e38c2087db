// Package koalaapi answers koala's calls, so that a site can replace koala by weir
// and change nothing else. Browse is a check, update a record, and browse with
// `_writeThrough` one take. The engine holds the rules; a rule's Code is its
// return code. docs/from/koala.md describes the move.
package koalaapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// API answers koala's calls, and any other path with `not found`. [New] makes
// one. It is safe for concurrent use.
type API struct {
	namespaces *namespace.Set
	config     Config

	pinging sync.Mutex
	pinged  atomic.Pointer[error] // what the last ping found; nil before the first
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

// New returns koala's API of namespaces.
func New(namespaces *namespace.Set, config Config) *API {
	if config.Context == nil {
		config.Context = context.Background()
	}
	return &API{namespaces: namespaces, config: config}
}

// reply is the answer to a call. All answers are text.
type reply struct {
	status int // 0 means 200
	body   []byte
}

// call answers one path. The reply is valid until x is used again.
type call func(a *API, x *exchange, r *http.Request) reply

// route is a call, the scopes that a caller needs for it, and the form of its answer to a
// request that is not decided.
type route struct {
	need   access.Scope
	call   call
	failed func(out []byte, r row) []byte
}

// routes lists the calls of a namespace by path. As in koala, the method does not
// matter.
var routes = map[string]route{
	"rule/browse":          {access.Decide, (*API).browse, oneRow},
	"rule/update":          {access.Record, (*API).update, noRow},
	"rule/browse_complete": {access.Decide, (*API).complete, listOfRows},
	"multi/browse":         {access.Decide, (*API).multi, oneRow},
	"rule/feedback":        {access.Record, (*API).feedback, noRow},
}

// enter sets the namespace of x, which its caller or the path names. It returns an error if
// a web page of another origin makes the call, or the authenticator refuses the caller.
func (a *API) enter(x *exchange, to *route, asked string, r *http.Request) (err error) {
	if access.CrossOrigin(r) {
		return a.config.Auth.Foreign()
	}
	if asked, err = namespace.Asked(asked, r.Header[namespace.Header]); err != nil {
		return err
	}
	if x.memory.Caller, err = a.config.Auth.Authenticate(access.CredentialsOf(r), to.need); err != nil {
		return err
	}
	x.namespace, err = a.namespaces.Choose(a.config.Auth, x.memory.Caller, asked)
	return err
}

// refused returns the status and the row for a caller that an authenticator refuses, or that
// names an unknown namespace.
func refused(h http.Header, err error) (int, row) {
	var no *access.Refusal
	switch {
	case !errors.As(err, &no):
		return answer.ProblemOf(err).Status, failure(-3, err.Error())
	case no.RetryAfter > 0:
		h.Set("Retry-After", strconv.FormatInt(int64((no.RetryAfter+time.Second-1)/time.Second), 10))
		return http.StatusTooManyRequests, failure(-3, no.Detail)
	case no.Reason == access.Missing, no.Reason == access.Unknown:
		return http.StatusForbidden, failure(-3, "wrong token")
	}
	return http.StatusForbidden, failure(-3, no.Detail)
}

// busy returns the answer of a call that an [*access.Overload] refuses.
func busy(err error, failed func(out []byte, r row) []byte) reply {
	return reply{http.StatusServiceUnavailable, failed(nil, failure(-5, err.Error()))}
}

// ServeHTTP answers one call.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{memory: access.Reservation{Resources: a.config.Resources}}
	defer x.memory.Free()
	path, query, _ := strings.Cut(r.RequestURI, "?") // as sent: koala does not decode paths
	asked, path, err := namespace.Cut(path)
	path = strings.Trim(path, "/")
	to, ok := routes[path]
	switch {
	case err != nil:
		to.failed = oneRow
	case path == "monitor/alive": // a health check, which anyone may make: it takes no place of a call
		x.write(w, r, a.alive())
		return
	case !ok:
		x.write(w, r, reply{http.StatusNotFound, []byte("not found")})
		return
	default:
		err = a.enter(x, &to, asked, r)
	}
	if err != nil {
		status, told := refused(w.Header(), err)
		x.write(w, r, reply{status, to.failed(x.out[:0], told)})
		return
	}
	if err := a.config.Resources.Begin(); err != nil {
		x.write(w, r, busy(err, to.failed))
		return
	}
	x.write(w, r, a.decided(x, &to, query, r))
}

// decided returns the answer to a request that has begun, and ends the request: a client that reads slowly keeps no
// others away.
func (a *API) decided(x *exchange, to *route, query string, r *http.Request) reply {
	defer a.config.Resources.End()
	if n := (strings.Count(query, "&") + 1) * parameterBytes; n > smallMulti {
		if err := x.memory.Reserve(int64(n)); err != nil {
			return busy(err, to.failed)
		}
	}
	x.read(query)
	return to.call(a, x, r)
}

// parameterBytes is about the memory of a parameter while the list of them grows. In a query it can be two bytes.
const parameterBytes = 96

// alive reports whether the store is available.
func (a *API) alive() reply {
	if err := a.config.Resources.Loaded(); err != nil {
		return busy(err, oneRow)
	}
	if a.config.Ping != nil && a.ping() != nil {
		return reply{http.StatusInternalServerError, []byte(`{"errno": -1, "errmsg": "redis-error!"}`)}
	}
	return reply{body: []byte(`{"errno": 0, "errmsg": "OK!"}`)}
}

// ping pings the store. While another call does, it returns what the ping before found.
func (a *API) ping() error {
	if !a.pinging.TryLock() {
		if last := a.pinged.Load(); last != nil {
			return *last
		}
		a.pinging.Lock()
	}
	defer a.pinging.Unlock()
	err := a.config.Ping(a.config.Context)
	a.pinged.Store(&err)
	return err
}

// appendParameters appends every parameter of a query, in order: of several
// with the same name the last one counts, for the engine as for koala. It
// accepts any query and reads all of it, so that no request can avoid a rule by
// a malformed part:
//
//   - a name without `=` has an empty value, which is the same as none;
//   - text with an invalid escape stays as it is.
func appendParameters(attrs []weir.Attribute, query string) []weir.Attribute {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		attrs = append(attrs, weir.Attribute{Name: unescape(name), Value: unescape(value)})
	}
	return attrs
}

// unescape decodes `%41` to A and `+` to a blank. It copies the text only if
// there is something to decode.
func unescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}
