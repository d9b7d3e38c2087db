// Package namespace finds the rules and counters that a call is for. All front ends
// use it: a [Set] holds the namespaces that the service serves, and [Set.Choose]
// returns the one of a call, if its caller may use it. Front ends have no other way
// to an engine, so none can skip the check.
package namespace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
)

// Default is the namespace of calls that name none.
const Default = access.DefaultNamespace

// Namespace is the rules and counters of one tenant. Make one with [New]. It is
// safe for concurrent use.
type Namespace struct {
	name   string
	engine *weir.Engine
	most   int64 // bytes of an answer; 0: no limit
	tops   *top.Collector
	kept   *Kept
	source atomic.Pointer[Source]
	gone   atomic.Bool

	planning chan struct{} // see [Namespace.Run]
	exports  *access.Places
}

// Source describes the source of the rules in force.
type Source struct {
	File   string    // path of the rules file, or "demo"
	Hash   string    // hash of the file and of the lists that it names
	Loaded time.Time // time at which the rules came into force
}

// New returns a namespace that engine decides. A nil engine means a
// namespace whose rules could not be read yet: [Set.Choose] returns [ErrNoRules]
// for it. maxAnswer is the maximum size of an answer about decisions, in bytes, as run.Size counts
// them; 0 means no limit. tops collects the decisions of the engine; it may be nil.
func New(name string, engine *weir.Engine, maxAnswer int64, tops *top.Collector) *Namespace {
	n := &Namespace{name: name, engine: engine, most: maxAnswer, tops: tops, kept: &Kept{}, exports: access.NewPlaces(exports),
		planning: make(chan struct{}, cap(planning)/2)}
	n.source.Store(&Source{})
	return n
}

// Name returns the name of n.
func (n *Namespace) Name() string { return n.name }

// Engine returns the engine that decides in n. Front ends decide and explain requests with [Namespace.Run] and [Namespace.Explain].
func (n *Namespace) Engine() *weir.Engine { return n.engine }

// fewItems is the maximum number of items whose decisions are planned at once, whatever else is planned.
const fewItems = 32

// planning is a semaphore for larger batches, whose memory is not reserved until Admit has their size. Planning waits
// for nothing, so one batch for each CPU is enough for a namespace. Patterns can make it take seconds, so a namespace gets
// only half of the places, and others need not wait for it.
var planning = make(chan struct{}, 2*runtime.GOMAXPROCS(0))

// Run calls the Run of n's engine, with the maximum size of answers. Of all large batches of the process, it plans few at a
// time; the others wait, for as long as ctx lasts.
func (n *Namespace) Run(ctx context.Context, items []weir.Item, o run.Options) (allowed bool, err error) {
	o.MaxSize = n.most
	if len(items) <= fewItems {
		return n.engine.Run(ctx, items, o)
	}
	if err := enter(ctx, n.planning); err != nil {
		return false, err
	}
	if err := enter(ctx, planning); err != nil {
		<-n.planning
		return false, err
	}
	planned := sync.OnceFunc(func() { <-planning; <-n.planning })
	defer planned()
	admit := o.Admit
	o.Admit = func(s run.Size) error {
		planned() // first, because admit may run others
		if admit == nil {
			return nil
		}
		return admit(s)
	}
	return n.engine.Run(ctx, items, o)
}

// enter waits for a place of a semaphore, for as long as ctx lasts.
func enter(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Explain calls the Explain of n's engine, with the maximum size of answers unless o has another.
func (n *Namespace) Explain(ctx context.Context, r weir.Request, o run.Options) (weir.Decision, []weir.RuleExplanation, error) {
	o.MaxSize = cmp.Or(o.MaxSize, n.most)
	return n.engine.Explain(context.WithValue(ctx, run.Key{}, o), r)
}

// exports is how many exports of a namespace there can be at a time.
const exports = 4

// BeginExport begins an export of keys for a caller of a share, which [access.Holder.Share] names, unless there is no
// place for it. The caller calls end when it is done.
func (n *Namespace) BeginExport(share string) (end func(), ok bool) {
	return func() { n.exports.Leave(share, 1) }, n.exports.Take(share, 1)
}

// Tops returns what collects the decisions of n, or nil.
func (n *Namespace) Tops() *top.Collector { return n.tops }

// Source returns the source of the rules in force.
func (n *Namespace) Source() Source { return *n.source.Load() }

// SetSource replaces what Source returns.
func (n *Namespace) SetSource(s Source) { n.source.Store(&s) }

// Gone reports whether n was removed from its [Set]. Calls that began before may
// still use it. What a front end keeps for n can be dropped.
func (n *Namespace) Gone() bool { return n.gone.Load() }

// Set is the namespaces that a service serves. Make one with [NewSet]. It is safe
// for concurrent use.
type Set struct {
	current atomic.Pointer[state]
}

// state is the namespaces of one moment. It is immutable.
type state struct {
	home   *Namespace // the one called Default, or nil
	byName map[string]*Namespace
}

// NewSet returns the set of namespaces.
func NewSet(namespaces ...*Namespace) *Set {
	s := &Set{}
	s.Replace(namespaces)
	return s
}

// Only returns the set of a service that has only the namespace default, which
// engine decides.
func Only(engine *weir.Engine) *Set { return NewSet(New(Default, engine, 0, nil)) }

// Replace replaces the namespaces of s.
func (s *Set) Replace(namespaces []*Namespace) {
	next := &state{byName: make(map[string]*Namespace, len(namespaces))}
	for _, n := range namespaces {
		next.byName[n.name] = n
	}
	next.home = next.byName[Default]
	if before := s.current.Swap(next); before != nil {
		for name, n := range before.byName {
			n.gone.Store(next.byName[name] != n)
		}
	}
}

// All returns the namespaces of s, sorted by name.
func (s *Set) All() []*Namespace {
	var all []*Namespace
	for _, n := range s.current.Load().byName {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *Namespace) int { return strings.Compare(a.name, b.name) })
	return all
}

var (
	// ErrUnknown is wrapped in the error of a call for a namespace that there is
	// not.
	ErrUnknown = errors.New("not found")
	// ErrNoRules is wrapped in the error of a call for a namespace whose rules could
	// not be read yet.
	ErrNoRules = errors.New("has no rules in force, because its file has errors; the service's log lists them")
)

// Choose returns the namespace of a call: the one that the call asks for or, if
// asked is empty, the one that its caller is bound to, or the one called Default.
// The caller h passed auth, whose [access.Reach] must be [access.ReachNamed]; both may
// be nil. The error is an [*access.Refusal] for a caller that is bound to another
// namespace, and wraps [ErrUnknown] or [ErrNoRules] for a namespace that cannot be
// used.
func (s *Set) Choose(auth *access.Authenticator, h *access.Holder, asked string) (*Namespace, error) {
	current := s.current.Load()
	if n := current.home; asked == "" && n != nil && n.engine != nil && (h == nil || h.Namespace == "") {
		return n, nil
	}
	name, err := auth.Namespace(h, asked)
	if err != nil {
		return nil, err
	}
	n := current.byName[name]
	switch {
	case n == nil:
		return nil, fmt.Errorf("namespace %.64q: %w", name, ErrUnknown)
	case n.engine == nil:
		return nil, fmt.Errorf("namespace %s: %w", name, ErrNoRules)
	}
	return n, nil
}

// Header is the header that names the namespace of a call over HTTP, in the
// spelling of [http.Header]. Metadata of gRPC has it in lower case.
const Header = "Weir-Namespace"

// prefix starts a path that names a namespace.
const prefix = "/ns/"

// Cut returns the namespace that the path of a call names, and the rest of the
// path: "shop" and "/v1/take" for "/ns/shop/v1/take". It returns a path that names
// none as it is, and an empty name. The error is a [*fault.Fault].
func Cut(path string) (name, rest string, err error) {
	if !strings.HasPrefix(path, prefix) {
		return "", path, nil
	}
	name = path[len(prefix):]
	if end := strings.IndexByte(name, '/'); end >= 0 {
		name, rest = name[:end], name[end:]
	}
	if err := access.CheckName(name); err != nil {
		return "", "", fault.Newf("namespace", "%v", err)
	}
	return name, rest, nil
}

// Asked returns the namespace that a call names in its path or in its header; both
// may be empty. header has the values of [Header]. The error, a [*fault.Fault], is
// for a header that is no name, or that contradicts the path.
func Asked(inPath string, header []string) (string, error) {
	if len(header) == 0 {
		return inPath, nil
	}
	name := header[0]
	if err := access.CheckName(name); err != nil {
		return "", fault.Newf("header "+Header, "%v", err)
	}
	for _, other := range header[1:] {
		if other != name {
			return "", fault.Newf("header "+Header, "is there twice: %s and %.64q", name, other)
		}
	}
	if inPath != "" && inPath != name {
		return "", fault.Newf("header "+Header, "%s, and the path names the namespace %s; send one of them", name, inPath)
	}
	return name, nil
}
