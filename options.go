package weir

import (
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// EngineOption is an option of [NewEngine].
type EngineOption interface{ engine(*options) error }

// LimiterOption is an option of [NewLimiter], [MustLimiter] and [NewCounter].
type LimiterOption interface{ limiter(*options) error }

// Option is an option of engines, limiters and counters.
type Option interface {
	EngineOption
	LimiterOption
}

type options struct {
	store     store.Store
	local     store.Store
	nodes     int64
	nodesNow  func() int
	observer  Observer
	namespace string

	// Of limiters and counters only.
	name    string
	maxKeys int64
	outage  rule.Outage
}

// option implements Option, limiterOption only LimiterOption.
type (
	option        func(*options) error
	limiterOption func(*options) error
)

func (f option) engine(o *options) error         { return f(o) }
func (f option) limiter(o *options) error        { return f(o) }
func (f limiterOption) limiter(o *options) error { return f(o) }

// WithStore keeps the counters in s. The caller closes s. For a store that can
// be out of reach, see [WithLocal]. Default: memory of its own, which Close
// frees.
func WithStore(s store.Store) Option {
	return option(func(o *options) error {
		if s == nil {
			return fault.Newf("store", "nil: leave the option out to count in memory")
		}
		o.store = s
		return nil
	})
}

// WithLocal makes s, a store in this process's memory, decide while the store
// given with [WithStore] is out of reach. It applies to rules and limiters whose
// outage policy is local. nodes is how many processes share the store: each admits an
// nth of each quota, rounded up. What s counts stays in s for the next outage.
// When the store answers again, a goroutine records there what s counted
// meanwhile; Close of the engine, limiter or counter ends it. The caller closes
// s. Default: the local policy denies.
func WithLocal(s store.Store, nodes int) Option {
	return option(func(o *options) error {
		if s == nil {
			return fault.Newf("local store", "nil: leave the option out to deny while the store is out of reach")
		}
		if nodes < 1 {
			return fault.Newf("nodes", "%d: want at least 1", nodes)
		}
		o.local, o.nodes = s, int64(nodes)
		return nil
	})
}

// WithNodes replaces the number of processes that [WithLocal] is given by one
// that can change: count is called when local memory decides. It must be fast
// and safe for concurrent use, and should keep its last number while the store
// is out of reach. A number below 1 counts as 1. Default: WithLocal's number.
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

// WithNamespace keeps the counters apart from those of other namespaces in the
// same store. Default: the namespace "".
func WithNamespace(name string) Option {
	return option(func(o *options) error { o.namespace = name; return nil })
}

// WithName names the counters of a limiter or a counter within their store.
// Two that share a store and a name count together. A name is required with
// [WithStore]. Default: none.
func WithName(name string) LimiterOption {
	return limiterOption(func(o *options) error { o.name = name; return nil })
}

// WithMaxKeys bounds the keys that a limiter or a counter keeps in memory. A
// new key over the bound is an outage with the cause [store.ErrFull]. Default:
// [store.DefaultMaxKeys].
func WithMaxKeys(n int64) LimiterOption {
	return limiterOption(func(o *options) error {
		if n < 1 {
			return fault.Newf("max keys", "%d: want at least 1", n)
		}
		o.maxKeys = n
		return nil
	})
}

// WithOutage sets what a limiter answers while its store is out of reach:
// [rule.OutageLocal] asks the store given with [WithLocal] and denies without
// one, [rule.OutageAllow] admits, [rule.OutageDeny] denies. Results say
// Degraded then. A counter has nothing to admit or deny: unless its policy is
// local and there is a local store, it answers with the error. Default:
// [rule.OutageLocal], as for rules.
func WithOutage(policy rule.Outage) LimiterOption {
	return limiterOption(func(o *options) error {
		if policy > rule.OutageDeny {
			return fault.Newf("outage", "%d: want rule.OutageLocal, OutageAllow or OutageDeny", policy)
		}
		o.outage = policy
		return nil
	})
}

func applyEngine(list []EngineOption) (o options, faults fault.List) {
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
