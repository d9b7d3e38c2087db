package weir

import (
	"context"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// LimiterOption is an option of [NewLimiter], [MustLimiter] and [NewCounter].
type LimiterOption interface{ limiter(*options) error }

// Option is an option of engines ([NewEngine]), limiters and counters.
type Option interface {
	LimiterOption
	engine(*options) error
}

type options struct {
	store    store.Store
	local    store.Store
	reports  any // *report.Shared of local; programs without a given store do not link it
	nodes    int64
	nodesNow func() int

	// fallback and unconfirmed are set with store: programs without a given store do not link them.
	fallback    func(*options) (drive.Fallback, error)
	unconfirmed func(context.Context, *drive.Driver, *drive.Task, *store.OutageError)

	observer  Observer
	namespace string

	// compile is set with store: what no one else counts in has no holds.
	compile func(window.Limit) (*window.Compiled, error)

	// Of limiters and counters only.
	further []Limit
	name    string
	maxKeys int64
	outage  rule.Outage

	maxWaiting int64
}

// option implements Option, and limiterOption only LimiterOption.
type (
	option        func(*options) error
	limiterOption func(*options) error
)

func (f option) engine(o *options) error         { return f(o) }
func (f option) limiter(o *options) error        { return f(o) }
func (f limiterOption) limiter(o *options) error { return f(o) }

// WithStore keeps the counters in s. The caller closes s, after the engine, limiter
// or counter. If s is not in this process's memory, tell [WithLocal] or [WithNodes] how
// many processes share it, for outages. Default: a store in memory, which the engine,
// limiter or counter has to itself and closes.
func WithStore(s store.Store) Option {
	return option(func(o *options) error {
		if s == nil {
			return fault.Newf("store", "nil: leave the option out to count in memory")
		}
		o.store, o.compile, o.fallback, o.unconfirmed = s, window.Compile, newLocal, drive.Unconfirmed
		return nil
	})
}

// WithLocal makes s, a store in this process's memory, decide while the store
// given with [WithStore] cannot answer. It applies to rules and limiters whose
// outage policy is [rule.OutageLocal]. nodes is the number of processes that
// share the store given with WithStore. During an outage each of them admits
// 1/nodes of each quota, rounded up. What s counts stays in s for the next outage.
// After the outage a goroutine records it in the other store, too, and ends the holds there whose ends got no answer;
// Close of the last engine, limiter or counter with this Option ends the goroutine. The caller closes s. WithLocal
// needs WithStore, with another store. Give engines that share s the same Option, and the same store, so that each can
// settle what another one has to record, such as what was found in a data directory.
//
// Default: over a store that is neither in memory nor a data directory, a store in memory
// that the engine, limiter or counter has to itself and closes, and one node. During an
// outage each process then admits the whole quota, so use WithLocal or [WithNodes] where several
// processes share the store.
func WithLocal(s store.Store, nodes int) Option {
	reports := &report.Shared{}
	return option(func(o *options) error {
		if s == nil {
			return fault.Newf("local store", "nil: leave the option out for one that is made and closed with the limiter or engine")
		}
		if nodes < 1 {
			return fault.Newf("nodes", "%d: want at least 1", nodes)
		}
		o.local, o.nodes, o.reports = s, int64(nodes), reports
		return nil
	})
}

// newLocal returns the local store of o, or one of its own.
func newLocal(o *options) (drive.Fallback, error) {
	l := &drive.Local{Store: o.local, Nodes: o.nodes, NodesNow: o.nodesNow}
	reports, _ := o.reports.(*report.Shared)
	if o.local == nil {
		l.Store, l.Owned, l.Nodes, reports = memstore.New(), true, 1, &report.Shared{}
	}
	var ok bool
	if l.Reporter, l.End, ok = reports.Open(o.store, hook.Of(l.Store).SideStore, o.namespace); !ok {
		return nil, fault.Newf("local store", "of engines on another store: want a WithLocal for each store, with its own local store")
	}
	if o.observer != nil {
		l.Told = o.observer.Outage
	}
	return l, nil
}

// WithNodes replaces the number of processes that [WithLocal] is given, or one if
// there is no WithLocal, by one that can change: count is called when local memory
// decides. It must be fast and safe for concurrent use, and should keep its last
// number while the store is unavailable. A number below 1 counts as 1. Default:
// WithLocal's number.
func WithNodes(count func() int) Option {
	return option(func(o *options) error {
		if count == nil {
			return fault.Newf("nodes", "nil: leave the option out to keep the number of WithLocal")
		}
		o.nodesNow = count
		return nil
	})
}

// WithObserver calls b's methods after each decision, error and outage.
// Default: no observer.
func WithObserver(b Observer) Option {
	return option(func(o *options) error { o.observer = b; return nil })
}

// Observer receives the decisions, errors and outages of an [Engine], a [Limiter]
// or a [Counter], for metrics, logs and traces; see [WithObserver]. Its methods get
// the context of the call. They are called on the caller's goroutine before the call
// returns, so they should be quick. They can be called concurrently.
type Observer interface {
	// Decided is called after each decision. took is the time of the decision,
	// or that of the whole batch for a request in a batch. In the decision of a
	// limiter or a counter, the name set by [WithName] stands for the name of a
	// rule. Decided must not keep d or its slices.
	Decided(ctx context.Context, verb store.Verb, d *Decision, took time.Duration)

	// Failed is called for each request that gets an error: bad input, a done
	// context or a closed store.
	Failed(ctx context.Context, verb store.Verb, err error)

	// Outage is called when the store cannot answer, with the cause as err,
	// before the outage policies decide. It is also called, with the verb
	// [store.Refund], when the local store cannot take back what a denied request has
	// counted there.
	Outage(ctx context.Context, verb store.Verb, err error)
}

// WithNamespace puts the counters into the namespace called name. Two namespaces
// in one store share no counters. Default: the namespace "".
func WithNamespace(name string) Option {
	return option(func(o *options) error { o.namespace = name; return nil })
}

// WithName sets the name under which a limiter or a counter keeps its keys in a
// store. It is required with [WithStore]. Two limiters count together when they
// have the same store, namespace, name and measure, and windows with the same
// [window.Window.ID]. Default: "".
func WithName(name string) LimiterOption {
	return limiterOption(func(o *options) error { o.name = name; return nil })
}

// And adds limits to a limiter, next to the one that [NewLimiter] gets: a hit is
// admitted if all of them admit it, in one atomic step, and none counts it otherwise.
// [Result] has the numbers of the limit that decides, and says which one it is.
//
// All limits of a limiter measure the same, and each has another window. A [Counter] has no
// limits. Default: none.
func And(limits ...Limit) LimiterOption {
	return limiterOption(func(o *options) error { o.further = append(o.further, limits...); return nil })
}

// WithMaxKeys sets how many keys, at least 1, a limiter or a counter keeps in
// memory, for each of its limits. A call with one more key meets an outage whose cause is
// [store.ErrFull]; for it the local policy denies. Default:
// 10,000,000 keys.
func WithMaxKeys(n int64) LimiterOption {
	return limiterOption(func(o *options) error {
		if n < 1 {
			return fault.Newf("max keys", "%d: want at least 1", n)
		}
		o.maxKeys = n
		return nil
	})
}

// WithMaxWaiting sets how many callers, at least 1, can wait in a limiter at the same
// time, for all keys together. One more gets [ErrTooManyWaiting]. Default: 1000.
func WithMaxWaiting(n int) LimiterOption {
	return limiterOption(func(o *options) error {
		if n < 1 {
			return fault.Newf("max waiting", "%d: want at least 1", n)
		}
		o.maxWaiting = int64(n)
		return nil
	})
}

// WithOutage sets what a limiter answers while its store cannot:
// [rule.OutageLocal] asks a store in this process's memory (see [WithLocal]),
// [rule.OutageAllow] admits, [rule.OutageDeny] denies. Such results are
// marked Degraded. A counter has nothing to admit or deny: with
// rule.OutageLocal it counts in this process's memory, otherwise it returns the
// outage as an error. Default: [rule.OutageLocal].
func WithOutage(policy rule.Outage) LimiterOption {
	return limiterOption(func(o *options) error {
		if policy > rule.OutageDeny {
			return fault.Newf("outage", "%d: want rule.OutageLocal, OutageAllow or OutageDeny", policy)
		}
		o.outage = policy
		return nil
	})
}

func applyEngine(list []Option) (o options, faults fault.List) {
	for _, option := range list {
		if option != nil {
			faults = append(faults, fault.Of(option.engine(&o))...)
		}
	}
	return o, append(faults, o.check()...)
}

func applyLimiter(list []LimiterOption) (o options, faults fault.List) {
	for _, option := range list {
		if option != nil {
			faults = append(faults, fault.Of(option.limiter(&o))...)
		}
	}
	return o, append(faults, o.check()...)
}

// openStore sets the fields of d. It returns the hooks of d's store, and reports whether
// it has made the store. The error is a fault of the options.
func (o *options) openStore(d *drive.Driver) (hooks hook.Hooks, owned bool, err error) {
	if o.observer != nil {
		d.Told = o.observer.Outage
	}
	if d.Store = o.store; d.Store == nil {
		d.Store, owned = memstore.New(), true
	}
	hooks = hook.Of(d.Store)
	// A store with a side store is a data directory: its counters are in this process.
	shared := o.store != nil && hooks.Memory == nil && hooks.SideStore == nil
	if o.local != nil || shared && o.outage == rule.OutageLocal {
		d.Local, err = o.fallback(o)
	}
	d.Memory, d.Timed, d.Unconfirmed = hooks.Memory, hooks.Timed, o.unconfirmed
	return hooks, owned, err
}

// check returns the faults of options that do not go together.
func (o *options) check() (faults fault.List) {
	switch {
	case o.local == nil:
	case o.store == nil:
		faults.Addf("local store", "without WithStore: memory is the store already, leave WithLocal out")
	case o.local == o.store:
		faults.Addf("local store", "the same as the store: want one that is there when the store is not")
	}
	return faults
}
