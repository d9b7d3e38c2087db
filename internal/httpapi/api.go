// Package httpapi is weir's JSON API: it reads requests, asks the engine, and
// writes decisions. Being over a limit is an answer like any other, with
// status 200; only what cannot be decided is a [answer.Problem]. docs/http.md is the
// API as its users see it.
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
	"github.com/weirhq/weir/store"
)

// API answers everything below /v1/, and all other paths with a [answer.Problem].
// It is safe for concurrent use.
type API struct {
	engine *weir.Engine
	source func() Source
	routes map[string]methods
	origin *http.CrossOriginProtection
}

// Source is where the rules that are in force came from.
type Source struct {
	File   string    // the rules file, or what stands in for it
	Hash   string    // of the file and the lists it reads
	Loaded time.Time // when they came into force
}

// handler answers one call, or says why it cannot.
type handler func(x *exchange, w http.ResponseWriter, r *http.Request) error

// methods are the handlers of one path by method; "" takes every method.
type methods map[string]handler

// New is the API of engine. It asks source where the rules came from when
// somebody wants to know.
func New(engine *weir.Engine, source func() Source) *API {
	a := &API{engine: engine, source: source, origin: http.NewCrossOriginProtection()}
	a.routes = map[string]methods{
		"/v1/take":    {http.MethodPost: a.decide(store.Take)},
		"/v1/check":   {http.MethodPost: a.decide(store.Check)},
		"/v1/record":  {http.MethodPost: a.decide(store.Record)},
		"/v1/refund":  {http.MethodPost: a.decide(store.Refund)},
		"/v1/batch":   {http.MethodPost: a.batch},
		"/v1/explain": {http.MethodPost: a.explain},
		"/v1/usage":   {http.MethodGet: a.usage, http.MethodDelete: a.forget},
		"/v1/rules":   {http.MethodGet: a.rules},
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
	} else if a.origin.Check(r) != nil {
		return &answer.Problem{Status: http.StatusForbidden, Detail: "a web page of another origin may not call this"}
	}
	if h == nil {
		allow := strings.Join(slices.Sorted(maps.Keys(route)), ", ")
		return &answer.Problem{
			Status: http.StatusMethodNotAllowed,
			Detail: fmt.Sprintf("%s does not take %s; use %s", r.URL.Path, r.Method, allow),
			Allow:  allow,
		}
	}
	return h(x, w, r)
}

// jsonType is shared by all answers, which saves a slice for each.
var jsonType = []string{"application/json"}

// respond writes body, and a line's end so that it reads well in a terminal.
func respond(w http.ResponseWriter, body []byte) error {
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(append(body, '\n')) // the caller has gone if this fails
	return nil
}
