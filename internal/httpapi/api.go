// Package httpapi is the JSON API: it reads requests, calls the engine, and
// writes decisions. A denial is an ordinary answer with status 200. A request
// that cannot be decided is answered with an [answer.Problem]. docs/http.md
// describes the API to its users.
package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/answer"
	"github.com/weirhq/weir/internal/top"
	"github.com/weirhq/weir/store"
)

// API answers everything below /v1/, and all other paths with an
// [answer.Problem]. Make one with [New]. It is safe for concurrent use.
type API struct {
	engine *weir.Engine
	source func() Source
	tops   *top.Collector
	routes map[string]methods
	origin *http.CrossOriginProtection
}

// Source describes where the rules in force came from.
type Source struct {
	File   string    // path of the rules file, or "demo"
	Hash   string    // hash of the file and of the lists that it names
	Loaded time.Time // time at which the rules came into force
}

// handler answers one call, or returns the error that is the answer.
type handler func(x *exchange, w http.ResponseWriter, r *http.Request) error

// methods holds the handlers of one path by method; "" stands for every method.
type methods map[string]handler

// New returns the API of engine. It calls source for each request for the rules
// in force. tops collects the decisions of engine, or is nil.
func New(engine *weir.Engine, source func() Source, tops *top.Collector) *API {
	a := &API{engine: engine, source: source, tops: tops, origin: http.NewCrossOriginProtection()}
	a.routes = map[string]methods{
		"/v1/take":    {http.MethodPost: a.decide(store.Take)},
		"/v1/check":   {http.MethodPost: a.decide(store.Check)},
		"/v1/record":  {http.MethodPost: a.decide(store.Record)},
		"/v1/refund":  {http.MethodPost: a.decide(store.Refund)},
		"/v1/batch":   {http.MethodPost: a.batch},
		"/v1/explain": {http.MethodPost: a.explain},
		"/v1/usage":   {http.MethodGet: a.usage, http.MethodDelete: a.forget},
		"/v1/rules":   {http.MethodGet: a.rules},
		"/v1/top":     {http.MethodGet: a.top},
		"/v1/denials": {http.MethodGet: a.denials},
		"/v1/gate":    {"": a.gate},
	}
	return a
}

// ServeHTTP answers one call.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange()
	defer x.free()
	if err := a.serve(x, w, r); err != nil {
		answer.ProblemOf(err).Write(w)
	}
}

// serve calls the handler for the path and the method of r.
func (a *API) serve(x *exchange, w http.ResponseWriter, r *http.Request) error {
	route, ok := a.routes[r.URL.Path]
	if !ok {
		return &answer.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("no such path: %s", r.URL.Path)}
	}
	h := route[r.Method]
	if h == nil && r.Method == http.MethodHead {
		h = route[http.MethodGet]
	}
	if h == nil {
		h = route[""]
	} else if isCrossOrigin(a.origin, r) {
		return &answer.Problem{Status: http.StatusForbidden, Detail: "calls from web pages of another origin are refused"}
	}
	if h == nil {
		allow := strings.Join(slices.Sorted(maps.Keys(route)), ", ")
		return &answer.Problem{
			Status: http.StatusMethodNotAllowed,
			Detail: fmt.Sprintf("%s does not accept %s; use %s", r.URL.Path, r.Method, allow),
			Allow:  allow,
		}
	}
	return h(x, w, r)
}

// isCrossOrigin reports whether origin refuses r. Only browsers send the two
// headers that origin looks for, so most calls cost two lookups, without the time
// that it takes to bring the names of headers into their canonical form.
func isCrossOrigin(origin *http.CrossOriginProtection, r *http.Request) bool {
	return (len(r.Header["Sec-Fetch-Site"]) > 0 || len(r.Header["Origin"]) > 0) && origin.Check(r) != nil
}

// jsonType is shared by all answers, which saves an allocation for each.
var jsonType = []string{"application/json"}

// respond writes body and a newline.
func respond(w http.ResponseWriter, body []byte) error {
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(append(body, '\n')) // the caller has gone if this fails
	return nil
}
