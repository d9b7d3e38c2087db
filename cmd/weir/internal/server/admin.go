package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/pprof"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/internal/clientaddr"
	"github.com/weirhq/weir/internal/jsontext"
)

// adminRoute is one call of the admin address. Its fields are written without
// names, so that a call without scopes does not compile.
type adminRoute struct {
	method string
	need   access.Scope
	call   http.HandlerFunc
}

// admin answers the calls of operators: health, metrics, reload and profiles.
type admin struct {
	numbers *metrics.Metrics
	rules   *namespaces
	auth    *access.Authenticator
	routes  map[string]adminRoute
	ready   *readiness
	api     http.Handler   // answers calls in forwarded; nil: none does
	page    *page.Page     // or nil
	calls   *access.Places // for calls of routes, which are neither probes nor of others
	others  *access.Places // for those of the page and those in forwarded
	open    bool           // callers without a token may be strangers: those of a client address share their part of calls
}

// forwarded are calls of the API that operators, and the page, make at the admin address, too.
var forwarded = []string{
	"/v1/audit", "/v1/check", "/v1/denials", "/v1/events", "/v1/explain", "/v1/export", "/v1/overrides", "/v1/rules", "/v1/set", "/v1/top", "/v1/unban", "/v1/usage",
}

// adminCalls is how many calls of the admin address with one semaphore are answered at the same time. Probes do not
// count, so that the other connections are left to them.
const adminCalls = 16

// adminWrite is how long an answer may take, so that a client that does not read it makes room for others. Profiles may
// take longer, and streams have their own deadlines.
const adminWrite = 30 * time.Second

// tooManyAdminCalls is the error of further calls.
var tooManyAdminCalls = &access.Overload{Detail: fmt.Sprintf("the admin address answers %d calls at a time; try again", adminCalls)}

// newAdmin returns the handler of the admin address. auth nil admits everyone. api
// answers forwarded calls, p may be nil, and more are the calls of front ends.
func newAdmin(rules *namespaces, numbers *metrics.Metrics, ready *readiness, auth *access.Authenticator, api http.Handler, p *page.Page, more map[string]adminRoute) *admin {
	a := &admin{numbers: numbers, rules: rules, auth: auth, ready: ready, api: api, page: p, calls: access.NewPlaces(adminCalls), others: access.NewPlaces(adminCalls)}
	a.routes = map[string]adminRoute{
		"/metrics":             {http.MethodGet, access.Read, numbers.Handler().ServeHTTP},
		"/-/reload":            {http.MethodPost, access.Admin, a.reload},
		"/-/rotate-secret":     {http.MethodPost, access.Admin, a.rotateSecret},
		"/debug/pprof/cmdline": {http.MethodGet, access.Admin, cmdline},
		"/debug/pprof/profile": {http.MethodGet, access.Admin, pprof.Profile},
		"/debug/pprof/symbol":  {http.MethodGet, access.Admin, pprof.Symbol},
		"/debug/pprof/trace":   {http.MethodGet, access.Admin, pprof.Trace},
		profiles:               {http.MethodGet, access.Admin, pprof.Index},
	}
	for _, name := range []string{"allocs", "block", "goroutine", "heap", "mutex", "threadcreate"} {
		a.routes[profiles+name] = a.routes[profiles]
	}
	maps.Copy(a.routes, more)
	return a
}

// metricsOnly returns the handler of an address that has the metrics of a and its probes only. Its callers, who may be
// strangers, have places of their own.
func (a *admin) metricsOnly(auth *access.Authenticator, path string) *admin {
	return &admin{auth: auth, ready: a.ready, calls: access.NewPlaces(adminCalls), open: true, routes: map[string]adminRoute{cmp.Or(path, "/metrics"): {http.MethodGet, access.Read, a.numbers.Handler().ServeHTTP}}}
}

// profiles is the path below which Go's profiles are.
const profiles = "/debug/pprof/"

// ServeHTTP implements [http.Handler].
func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		healthz(w, r)
		return
	case "/readyz":
		a.ready.readyz(w, r)
		return
	}
	var until time.Time
	if !strings.HasPrefix(r.URL.Path, profiles) {
		until = time.Now().Add(adminWrite)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(until) // the connection may have one of an earlier call
	if _, path, err := namespace.Cut(r.URL.Path); err == nil {
		call := http.HandlerFunc(nil) // which authenticates the caller
		switch {
		case a.page.Has(path):
			call = a.page.ServeHTTP
		case a.api != nil && slices.Contains(forwarded, path):
			call = func(w http.ResponseWriter, r *http.Request) { a.page.Forward(a.api, path, w, r) }
		}
		if call != nil {
			a.answer(path, w, r, call)
			return
		}
	}
	to, ok := a.routes[r.URL.Path]
	if !ok {
		(&answer.Problem{Status: http.StatusNotFound, Detail: "no such path: " + r.URL.Path}).Write(w)
		return
	}
	if access.CrossOrigin(r) {
		answer.ProblemOf(a.auth.Foreign()).Write(w)
		return
	}
	if r.Method != to.method && (r.Method != http.MethodHead || to.method != http.MethodGet) {
		(&answer.Problem{
			Status: http.StatusMethodNotAllowed,
			Detail: r.URL.Path + " does not accept " + r.Method + "; use " + to.method,
			Allow:  to.method,
		}).Write(w)
		return
	}
	holder, err := a.auth.Authenticate(access.CredentialsOf(r), to.need)
	if err != nil {
		answer.ProblemOf(err).Write(w)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, namespace.CallerOf(holder, r.RemoteAddr)))
	share := holder.Share()
	if a.open && holder.Token() == "" {
		group, _ := clientaddr.PeerGroup(r.RemoteAddr)
		share = "address " + group // which neither a token nor a namespace is named
	}
	if !a.calls.Take(share, 1) {
		answer.ProblemOf(tooManyAdminCalls).Write(w)
		return
	}
	defer a.calls.Leave(share, 1)
	to.call(w, r)
}

// answer makes call answer a call of the page, or one in forwarded, unless too many are being answered.
func (a *admin) answer(path string, w http.ResponseWriter, r *http.Request, call http.HandlerFunc) {
	h := a.auth.Knows(a.page.Credentials(r))
	switch {
	case page.Lasts(path): // the number of streams has its own limit
	case h == nil: // a file of the page, a refusal, or who signs in: strangers must not keep others away
	case !a.others.Take(h.Share(), 1):
		answer.ProblemOf(tooManyAdminCalls).Write(w)
		return
	default:
		defer a.others.Leave(h.Share(), 1)
	}
	call(w, r)
}

// callerKey is the key of the caller in the context of a call.
type callerKey struct{}

// callerOf returns who makes a call.
func callerOf(r *http.Request) audit.Caller {
	c, _ := r.Context().Value(callerKey{}).(audit.Caller)
	return c
}

// reload reads the rules, the tokens and the certificates again.
func (a *admin) reload(w http.ResponseWriter, r *http.Request) {
	if err := a.rules.reload(request{"http", callerOf(r)}); err != nil {
		refusal(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var b []byte
	all := a.rules.set.All()
	if a.rules.place.dir == "" {
		b = appendLoaded(b, all[0])
	} else {
		b = append(b, `{"namespaces":{`...)
		first := true
		for _, n := range all {
			if n.Engine() == nil { // it has come since, with faults
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendLoaded(append(jsontext.AppendText(b, n.Name()), ':'), n)
		}
		b = append(b, "}}"...)
	}
	_, _ = w.Write(append(b, '\n')) // an error means that the caller is gone
}

// appendLoaded appends what is in force in a namespace.
func appendLoaded(b []byte, n *namespace.Namespace) []byte {
	return fmt.Appendf(b, `{"rules":%d,"hash":"%s"}`, n.Engine().Rules().Len(), n.Source().Hash)
}

// cmdline writes the command line of this process, without secrets.
func cmdline(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, strings.Join(access.Redact(os.Args), "\x00"))
}
