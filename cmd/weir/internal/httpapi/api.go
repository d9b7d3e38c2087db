// Package httpapi is the JSON API: it reads requests, calls the engine, and
// writes decisions. A denial is an ordinary answer with status 200. A request
// that cannot be decided is answered with an [answer.Problem]. docs/reference/http.md
// describes the API to its users.
package httpapi

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/api"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/clientaddr"
	"github.com/weirhq/weir/store"
)

// API answers everything below /v1/, and all other paths with an
// [answer.Problem]. Make one with [New]. It is safe for concurrent use.
type API struct {
	namespaces *namespace.Set
	auth       *access.Authenticator
	gates      *access.Authenticator // of /v1/gate
	proxies    *clientaddr.Proxies
	resources  *access.ResourceLimits
	headers    headers.Format
	routes     map[string]methods
	others     map[string]http.HandlerFunc
	events     *events.Hub // or nil
}

// handler answers one call, or returns the error that is the answer.
type handler func(x *exchange, w http.ResponseWriter, r *http.Request) error

// route is one call, and the scopes that a caller needs for it. Its fields are
// written without names, so that a call without scopes does not compile.
type route struct {
	need access.Scope
	call handler
}

// methods holds the calls of one path by method. "" stands for every method, of a call that a proxy makes: it
// forwards the method and the header of its client, so that their origin and namespace say nothing.
type methods map[string]route

// Config configures an [API]. The zero value is valid.
type Config struct {
	// Auth authenticates callers. Nil admits everyone.
	Auth *access.Authenticator

	// Proxies are those whose headers name the client of a gate call. Nil
	// believes the nearest one.
	Proxies *clientaddr.Proxies

	// Resources limits concurrent work. Nil has no limits.
	Resources *access.ResourceLimits

	// Headers is how gate calls state the limits of a decision.
	Headers headers.Format

	// Events delivers events. Nil: there are none.
	Events *events.Hub

	// Others serve further paths, such as /healthz. They authenticate their callers if need be.
	Others map[string]http.HandlerFunc
}

// New returns the API of namespaces.
func New(namespaces *namespace.Set, c Config) *API {
	a := &API{namespaces: namespaces, auth: c.Auth, gates: c.Auth.Proxied(), proxies: c.Proxies, resources: c.Resources, headers: c.Headers, others: c.Others, events: c.Events}
	a.routes = map[string]methods{
		"/v1/take":    {http.MethodPost: {access.Decide, a.decide(store.Take)}},
		"/v1/check":   {http.MethodPost: {access.Decide, a.decide(store.Check)}},
		"/v1/record":  {http.MethodPost: {access.Record, a.decide(store.Record)}},
		"/v1/refund":  {http.MethodPost: {access.Record, a.decide(store.Refund)}},
		"/v1/settle":  {http.MethodPost: {access.Decide, a.decide(store.Settle)}},
		"/v1/cancel":  {http.MethodPost: {access.Decide, a.decide(store.Cancel)}},
		"/v1/renew":   {http.MethodPost: {access.Decide, a.decide(store.Renew)}},
		"/v1/batch":   {http.MethodPost: {access.None, a.batch}}, // each request needs the scope of its verb
		"/v1/explain": {http.MethodPost: {access.Read, a.explain}},
		"/v1/usage":   {http.MethodGet: {access.Read, withoutBody(a.usage)}, http.MethodDelete: {access.Admin, withoutBody(a.forget)}},
		"/v1/rules":   {http.MethodGet: {access.Read, withoutBody(a.rules)}},
		"/v1/top":     {http.MethodGet: {access.Read, withoutBody(a.top)}},
		"/v1/denials": {http.MethodGet: {access.Read, withoutBody(a.denials)}},
		"/v1/overrides": {
			http.MethodGet: {access.Read, withoutBody(a.overrides)}, http.MethodPut: {access.Override, a.setOverride}, http.MethodDelete: {access.Override, withoutBody(a.removeOverride)},
		},
		"/v1/events": {http.MethodGet: {access.Read, a.stream}},
		"/v1/set":    {http.MethodPost: {access.Admin, a.setCount}},
		"/v1/unban":  {http.MethodPost: {access.Admin, a.liftBan}},
		"/v1/audit":  {http.MethodGet: {access.Admin, withoutBody(a.audit)}},
		"/v1/export": {http.MethodGet: {access.Read, a.export}},
		"/v1/gate":   {"": {access.Decide, a.gate}},

		"/v1/openapi.yaml": {http.MethodGet: {access.None, describe}},
	}
	return a
}

// ServeHTTP answers one call.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchanges.Get().(*exchange)
	x.Resources = a.resources
	defer x.recycle()
	if err := a.serve(x, w, r); err != nil {
		x.endRequest()
		answer.Refuse(w, r, err)
	}
}

// serve calls the handler for the path and the method of r, if the caller may
// make the call.
func (a *API) serve(x *exchange, w http.ResponseWriter, r *http.Request) error {
	namespaceName, path, err := namespace.Cut(r.URL.Path)
	if err != nil {
		return err
	}
	calls, ok := a.routes[path]
	if !ok {
		if other, ok := a.others[r.URL.Path]; ok {
			other(w, r)
			return nil
		}
		return &answer.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("no such path: %.100s", r.URL.Path)}
	}
	to, auth := calls[""], a.gates
	if to.call == nil {
		auth = a.auth
		if to = calls[r.Method]; to.call == nil && r.Method == http.MethodHead {
			to = calls[http.MethodGet]
		}
		if to.call == nil {
			allow := strings.Join(slices.Sorted(maps.Keys(calls)), ", ")
			return &answer.Problem{
				Status: http.StatusMethodNotAllowed,
				Detail: fmt.Sprintf("%s does not accept %.64s; use %s", r.URL.Path, r.Method, allow),
				Allow:  allow,
			}
		}
		if access.CrossOrigin(r) {
			return auth.Foreign()
		}
		if namespaceName, err = namespace.Asked(namespaceName, r.Header[namespace.Header]); err != nil {
			return err
		}
	}
	if x.Caller, err = auth.Authenticate(access.CredentialsOf(r), to.need); err != nil {
		return err
	}
	if x.namespace, err = a.namespaces.Choose(auth, x.Caller, namespaceName); err != nil {
		return err
	}
	return to.call(x, w, r)
}

// describe answers with the description of the API.
func describe(_ *exchange, w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = io.WriteString(w, api.OpenAPI()) // an error means that the caller is gone
	return nil
}

// jsonType is shared by all answers, which saves an allocation for each.
var jsonType = []string{"application/json"}

// withoutBody returns a handler of calls without a body, which are requests from their beginning. Calls that last as long
// as their readers, such as streams, have limits of their own instead.
func withoutBody(h handler) handler {
	return func(x *exchange, w http.ResponseWriter, r *http.Request) error {
		if err := x.beginRequest(); err != nil {
			return err
		}
		return h(x, w, r)
	}
}
