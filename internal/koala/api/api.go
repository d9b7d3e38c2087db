// Package api answers as koala does, so that a site that runs koala can
// put weir in its place and change nothing else. Browse is a check, update a
// record, a browse that writes through one take; which rules there are is the
// engine's business. docs/koala.md is for those who come from koala.
package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir"
)

// API answers koala's calls, and everything else with `not found`. Make one
// with [New]. It is safe for concurrent use.
type API struct {
	engine *weir.Engine
	config Config
	tally  *tally

	current atomic.Pointer[table] // of the rules in force when it was last asked
	making  sync.Mutex            // held while a table is made
}

// Config is what an API needs beside its engine. The zero value is valid.
type Config struct {
	// Ping says whether the store can be reached; nil: it always can.
	Ping func(context.Context) error

	// Rewrite puts the text of another rule file in force. What is wrong with
	// the text is a [*RulesError]; any other error is this program's trouble.
	// Without it, or without a Token, there is no such call.
	Rewrite func(text []byte) error

	// Token is what a caller has to show who rewrites the rules.
	Token string
}

// New is koala's API of engine. Close frees its statistics.
func New(engine *weir.Engine, config Config) (*API, error) {
	t, err := newTally()
	if err != nil {
		return nil, err
	}
	return &API{engine: engine, config: config, tally: t}, nil
}

// Close frees the statistics, after the last call.
func (a *API) Close() error { return a.tally.close() }

// reply is the answer to a call, which is text in every case.
type reply struct {
	status int // 0 means 200
	body   []byte
}

// call answers one path. What it returns is good until x is used again.
type call func(a *API, x *exchange, r *http.Request) reply

// route is the call at path, nil when there is none. Koala takes any method.
func (a *API) route(path string) call {
	switch strings.Trim(path, "/") {
	case "rule/browse":
		return (*API).browse
	case "rule/update":
		return (*API).update
	case "rule/browse_complete":
		return (*API).complete
	case "multi/browse":
		return (*API).multi
	case "monitor/alive":
		return (*API).alive
	case "rule/feedback":
		return (*API).feedback
	case "rule/value":
		return (*API).value
	case "dump/counter":
		return (*API).dumpCounter
	case "dump/policy":
		return (*API).dumpPolicy
	case "rule/rewrite":
		if a.config.Rewrite != nil && a.config.Token != "" {
			return (*API).rewrite
		}
	}
	return nil
}

// ServeHTTP answers one call.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchanges.Get().(*exchange)
	defer x.free()
	path, query, _ := strings.Cut(r.RequestURI, "?") // as it was sent: koala decodes no paths
	x.read(query)
	if c := a.route(path); c != nil {
		x.write(w, r, c(a, x, r))
		return
	}
	x.write(w, r, reply{http.StatusNotFound, []byte("not found")})
}
