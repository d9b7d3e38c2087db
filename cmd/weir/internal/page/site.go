// Package page is weir's page: [Page] serves it at the admin address, and [Report] writes the reports of package replay
// with the same parts. A report is one HTML file. It needs no network, follows the reader's light or dark colours, and
// prints. Every chart has its numbers in a table below.
package page

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// Page serves the page at the admin address: its files, and the calls below /page/ that only it
// makes. Make one with [New]. It is safe for concurrent use.
//
// The calls below /page/ are no stable API: they change with the page, which comes from the same
// program. Everything that other programs need is below /v1/.
type Page struct {
	c     Config
	began time.Time
	files map[string]*file
	calls map[string]map[string]call // by path and method

	streams *access.Places
	ended   context.Context // of streams
	end     context.CancelFunc
}

// Config configures a [Page].
type Config struct {
	// Auth authenticates callers. Without tokens, the page only reads.
	Auth *access.Authenticator

	// Namespaces are those that the service serves.
	Namespaces *namespace.Set

	// Write allows callers with scope admin to save rules.
	Write bool

	// Secure reports whether the address has TLS, so that the cookie is sent over TLS only.
	Secure bool

	// Version is the version of the service, and API the address of its API.
	Version, API string
}

// Caller is who makes a call.
type Caller struct {
	*access.Holder

	// By is how the audit names the caller.
	By audit.Caller

	// Name is the name of the namespace that the call is for.
	Name string

	space *namespace.Namespace
	err   error
}

// Namespace returns the namespace that the call is for. The error wraps [namespace.ErrNoRules] if its
// rules could not be read yet.
func (c *Caller) Namespace() (*namespace.Namespace, error) { return c.space, c.err }

// Whole reports whether the caller may see what concerns all namespaces.
func (c *Caller) Whole() bool { return c.Holder.Namespace == "" }

// Handler answers one call, or returns the error that is the answer.
type Handler func(c *Caller, w http.ResponseWriter, r *http.Request) error

// call is a call with the scopes that its caller needs.
type call struct {
	need access.Scope
	do   Handler
}

// New returns a page without calls other than those of its session.
func New(c Config) *Page {
	p := &Page{c: c, began: time.Now(), files: readFiles(), calls: map[string]map[string]call{}, streams: access.NewPlaces(maxStreams)}
	p.ended, p.end = context.WithCancel(context.Background())
	return p
}

// EndStreams ends all streams, so that the service can stop. There are no new ones.
func (p *Page) EndStreams() { p.end() }

// Handle adds a call. It must not be called once p serves.
//
// A call other than GET is answered only if it comes from the page itself. If it needs a scope that
// changes something, callers need a token.
func (p *Page) Handle(method, path string, need access.Scope, do Handler) {
	if p.calls[path] == nil {
		p.calls[path] = map[string]call{}
	}
	p.calls[path][method] = call{need, do}
}

// prefix starts the paths of calls that only the page makes.
const prefix = "/page/"

// Has reports whether p serves a path.
func (p *Page) Has(path string) bool {
	return p != nil && (strings.HasPrefix(path, prefix) || p.files[path] != nil)
}

// Lasts reports whether a call of path is a stream.
func Lasts(path string) bool { return path == streamPath || path == watchPath || path == "/v1/events" }

// streamPath is the path of the stream of the overview.
const streamPath = prefix + "stream"

// ServeHTTP implements [http.Handler]. It serves paths for which Has returns true, with or without a
// namespace in front.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if f := p.files[r.URL.Path]; f != nil {
		f.serve(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := p.serve(w, r); err != nil {
		answer.Refuse(w, r, err)
	}
}

// serve answers a call below /page/.
func (p *Page) serve(w http.ResponseWriter, r *http.Request) error {
	name, path, err := namespace.Cut(r.URL.Path)
	if err != nil {
		return err
	}
	if access.CrossOrigin(r) {
		return p.c.Auth.Foreign()
	}
	if path == sessionPath {
		return p.session(w, r)
	}
	methods, ok := p.calls[path]
	if !ok {
		return &answer.Problem{Status: http.StatusNotFound, Detail: "no such path: " + r.URL.Path}
	}
	to, ok := methods[r.Method]
	if !ok && r.Method == http.MethodHead {
		to, ok = methods[http.MethodGet]
	}
	if !ok {
		return notAllowed(r, slices.Sorted(maps.Keys(methods))...)
	}
	if !reads(r) && !fromPage(r) && len(r.Header["Authorization"]) == 0 {
		return errNotFromPage
	}
	if !reads(r) && changes(to.need) && !p.signsIn() {
		return errReadsOnly
	}
	if r, err = p.adopt(r); err != nil {
		return err
	}
	c, err := p.caller(r, name, to.need)
	if err != nil {
		return err
	}
	return to.do(c, w, r)
}

// caller authenticates the caller of r, whose path names a namespace or none.
func (p *Page) caller(r *http.Request, inPath string, need access.Scope) (*Caller, error) {
	asked, err := namespace.Asked(inPath, r.Header[namespace.Header])
	if err != nil {
		return nil, err
	}
	holder, err := p.c.Auth.Authenticate(access.CredentialsOf(r), need)
	if err != nil {
		return nil, err
	}
	c := &Caller{Holder: holder, By: namespace.CallerOf(holder, r.RemoteAddr)}
	if c.Name, err = p.c.Auth.Namespace(holder, asked); err != nil {
		return nil, err
	}
	if c.space, c.err = p.c.Namespaces.Choose(p.c.Auth, holder, asked); c.err != nil && !errors.Is(c.err, namespace.ErrNoRules) {
		return nil, c.err
	}
	return c, nil
}

// notAllowed returns the answer to a call with another method than those allowed.
func notAllowed(r *http.Request, allowed ...string) error {
	allow := strings.Join(allowed, ", ")
	return &answer.Problem{
		Status: http.StatusMethodNotAllowed, Allow: allow,
		Detail: fmt.Sprintf("%s does not accept %s; use %s", r.URL.Path, r.Method, allow),
	}
}

// changes reports whether calls that need scopes change something.
func changes(need access.Scope) bool { return need&(access.Record|access.Override|access.Admin) != 0 }

// reads reports whether the method of r is one that changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
