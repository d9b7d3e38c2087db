package weir

import (
	"errors"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
)

// Option changes how an [Engine], a [Limiter] or a [Counter] is made.
type Option func(*options) error

type options struct {
	store    store.Store
	local    store.Store
	nodes    int64
	observer Observer
	name     string
	maxKeys  int64
}

func apply(list []Option) (o options, err error) {
	for _, option := range list {
		if err := option(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// WithStore keeps the counters in s, which its maker closes. For a store that
// can be out of reach, see [WithLocal]. Default: memory of its own, which Close
// frees.
func WithStore(s store.Store) Option {
	return func(o *options) error {
		if s == nil {
			return fault.Newf("store", "nil: leave the option out to count in memory")
		}
		o.store = s
		return nil
	}
}

// WithObserver tells b of every decision of an engine. Default: nobody.
func WithObserver(b Observer) Option {
	return func(o *options) error { o.observer = b; return nil }
}

// WithName names the counters of a limiter or a counter within their store.
// Two that share a store and a name count together; so a name is needed with
// [WithStore].
func WithName(name string) Option {
	return func(o *options) error { o.name = name; return nil }
}

// WithMaxKeys bounds the keys that a limiter or a counter keeps in memory. A
// new key over it is answered with an error; see [store.ErrFull]. Default:
// [store.DefaultMaxKeys].
func WithMaxKeys(n int64) Option {
	return func(o *options) error {
		if n < 1 {
			return fault.Newf("max keys", "%d: want at least 1", n)
		}
		o.maxKeys = n
		return nil
	}
}

// ErrUnknownRule answers a question about a rule that is not in force.
var ErrUnknownRule = errors.New("weir: no such rule")
