// Package api answers koala's calls, so that a site can replace koala by weir
// and change nothing else. Browse is a check, update a record, and browse with
// `_writeThrough` one take. The engine holds the rules; a rule's Code is its
// return code. docs/koala.md describes the move.
package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir"
)

// API answers koala's calls, and any other path with `not found`. [New] makes
// one. It is safe for concurrent use.
type API struct {
	engine *weir.Engine
	config Config
	tally  *tally

	current atomic.Pointer[table] // of the rules that decided last
	making  sync.Mutex            // held while a table is being made
}

// Config holds what an API needs beside its engine. The zero value is valid.
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
	// program. The call rule/rewrite exists only with Rewrite and Token.
	Rewrite func(text []byte) error

	// Token is what a caller must send to rewrite the rules.
	Token string
}

// New returns koala's API of engine. Close frees its statistics.
func New(engine *weir.Engine, config Config) (*API, error) {
	if config.Context == nil {
		config.Context = context.Background()
	}
	t, err := newTally()
	if err != nil {
		return nil, err
	}
	return &API{engine: engine, config: config, tally: t}, nil
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

// route returns the call at path, or nil if there is none. As in koala, the
// method does not matter.
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
	path, query, _ := strings.Cut(r.RequestURI, "?") // as sent: koala does not decode paths
	x.read(query)
	if c := a.route(path); c != nil {
		x.write(w, r, c(a, x, r))
		return
	}
	x.write(w, r, reply{http.StatusNotFound, []byte("not found")})
}
