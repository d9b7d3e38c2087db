package weir

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// Engine holds requests to a set of rules. Make one with [NewEngine]. Its
// methods are safe for concurrent use, and the rules can be swapped meanwhile.
type Engine struct {
	store    store.Store
	owned    bool // Close closes the store
	local    store.Store
	nodes    int64 // that share each quota while the store is out of reach
	observer Observer
	rules    atomic.Pointer[ruleset]
	swap     sync.Mutex // held by SetRules
	calls    sync.Pool  // of *call
}

// Observer is told of every decision, for metrics. It is called on the
// caller's goroutine and must not keep d.
type Observer interface {
	Decided(verb Verb, d *Decision, took time.Duration)
}

// ruleset is a set of rules with the spaces that their counters live in.
type ruleset struct {
	*rule.Set
	spaces []*store.Space
	shares sync.Map // *window.Compiled by shareOf; filled in an outage
}

// NewEngine makes an engine that holds requests to rules. By default it counts
// in memory of its own.
func NewEngine(rules *rule.Set, options ...Option) (*Engine, error) {
	o, err := apply(options)
	if err != nil {
		return nil, err
	}
	if rules == nil {
		return nil, fault.Newf("rules", "nil: want a set, which rule.New and rulefile.Load make")
	}
	e := &Engine{store: o.store, observer: o.observer, local: o.local, nodes: o.nodes}
	if e.store == nil {
		e.store, e.owned = memstore.New(), true
	}
	e.calls.New = func() any { return new(call) }
	e.SetRules(rules)
	return e, nil
}

// Take asks whether the action may happen and, if so, counts it in every rule
// that matches; otherwise in none. Being over a limit is a Decision, not an
// error: errors are bad input ([*fault.Fault]), a done context, a closed store.
// After an error nothing was counted.
func (e *Engine) Take(ctx context.Context, r Request) (Decision, error) {
	return e.decide(ctx, store.Take, &r)
}

// Check asks whether the action may happen, and counts nothing.
func (e *Engine) Check(ctx context.Context, r Request) (Decision, error) {
	return e.decide(ctx, store.Check, &r)
}

// Record counts the action whatever the limits, for what has happened already.
func (e *Engine) Record(ctx context.Context, r Request) (Decision, error) {
	return e.decide(ctx, store.Record, &r)
}

// Refund gives the hits of an action back in every rule that matches it, or, for
// a request with Feedback, the hits that each of them states for it.
func (e *Engine) Refund(ctx context.Context, r Request) (Decision, error) {
	return e.decide(ctx, store.Refund, &r)
}

func (e *Engine) decide(ctx context.Context, verb Verb, r *Request) (Decision, error) {
	var d Decision
	err := e.Do(ctx, verb, r, &d)
	return d, err
}

// Do runs verb and writes the answer into d, whose slices it reuses: with a
// Decision that is used again it allocates nothing, but for the text of keys
// that are made of several attributes. After an error d holds no answer.
func (e *Engine) Do(ctx context.Context, verb Verb, r *Request, d *Decision) error {
	var began time.Time
	if e.observer != nil {
		began = time.Now()
	}
	c := e.calls.Get().(*call)
	err := c.run(ctx, e, verb, r, d)
	c.reset()
	e.calls.Put(c)
	if err == nil && e.observer != nil {
		e.observer.Decided(verb, d, time.Since(began))
	}
	return err
}

// Rules are the rules in force.
func (e *Engine) Rules() *rule.Set { return e.rules.Load().Set }

// SetRules puts other rules in force, at once and for all requests that start
// later. A counter is kept when its rule's identity ([rule.Set.ID]) is the same
// as before: its name, key, measure and window.
func (e *Engine) SetRules(rules *rule.Set) {
	e.swap.Lock()
	defer e.swap.Unlock()
	known := map[string]*store.Space{}
	if old := e.rules.Load(); old != nil {
		for _, s := range old.spaces {
			known[s.ID] = s
		}
	}
	next := &ruleset{Set: rules, spaces: make([]*store.Space, rules.Len())}
	for i := range next.spaces {
		r := rules.Rule(i)
		s := &store.Space{ID: rules.ID(i), Name: r.Name, MaxKeys: r.MaxKeys}
		if old := known[s.ID]; old != nil && old.MaxKeys == s.MaxKeys {
			s = old
		}
		next.spaces[i] = s
	}
	e.rules.Store(next)
}

// Close closes the store, unless it was given with [WithStore].
func (e *Engine) Close() error {
	if !e.owned {
		return nil
	}
	return e.store.Close()
}
