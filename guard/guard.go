package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
)

// Decider is an engine, or a client of a service. It must be safe for concurrent use.
type Decider interface {
	// Do decides a request, as [weir.Engine.Do] does.
	Do(ctx context.Context, verb store.Verb, r *weir.Request, d *weir.Decision) error
}

// guard decides calls. It is safe for concurrent use.
type guard struct {
	// One of the two is nil.
	limiter *weir.Limiter
	decider Decider

	name   string // of the limiter's policy
	limits []weir.Limit
}

// forLimiter returns a guard that applies the limit of l to each key. name is the name of the limit in
// headers and denials. forLimiter refuses a limiter of distinct members.
func forLimiter(l *weir.Limiter, name string) (*guard, error) {
	g := &guard{limiter: l, limits: l.Limits(), name: name}
	switch {
	case len(g.limits) == 0:
		return nil, errors.New("guard: limiter: nil or zero: make one with weir.NewLimiter or weir.MustLimiter")
	case g.limits[0].Measure != 0:
		return nil, fmt.Errorf("guard: limiter: counts %v, want a limiter of hits", g.limits[0].Measure)
	}
	return g, nil
}

// forEngine returns a guard that decides by the rules of d: an engine, or a client of a
// service. The caller closes d.
func forEngine(d Decider) (*guard, error) {
	none := d == nil
	switch v := d.(type) {
	case nil:
	case *weir.Engine:
		none = v.Rules() == nil
	default:
		at := reflect.ValueOf(d)
		none = at.Kind() == reflect.Pointer && at.IsNil()
	}
	if none {
		return nil, errors.New("guard: engine: nil or zero: make one with weir.NewEngine, or a client with client.New")
	}
	return &guard{decider: d}, nil
}

// ErrNoKey is the error of a call without a key. The empty key is never a key: all
// calls without one would share one counter.
var ErrNoKey = errors.New("guard: the call has no key for its limit")

// emptyAttributeError is the error of a call with an attribute whose value is
// empty. Rules that need the attribute would not match the call, and let it pass.
// Leave out attributes that a call may lack.
type emptyAttributeError struct{ name string }

func (e *emptyAttributeError) Error() string {
	return fmt.Sprintf("guard: attribute %s is empty: leave it out if calls may lack it", e.name)
}

// ask is a call that a guard decides.
type ask struct {
	// key is the key of a call for a limiter. It must not be empty.
	key string

	// attributes describe a call for an engine or a client. No value may be empty. The guard
	// keeps them until the call ends.
	attributes []weir.Attribute

	// hits is the cost of the call; 0 means 1.
	hits int64
}

// take decides a call, counts it if it is allowed, and writes the answer into c. It
// overwrites c and reuses its memory, but c must have ended. If the call is allowed
// and holds something, c keeps that alive until [Call.end], which must be called. See
// [Middleware.Take] for the error.
func (g *guard) take(ctx context.Context, ask ask, c *Call) error {
	c.Allowed, c.guard = false, g
	if g.limiter != nil {
		return g.takeKey(ctx, &ask, c)
	}
	for i := range ask.attributes {
		if ask.attributes[i].Value == "" {
			return &emptyAttributeError{ask.attributes[i].Name}
		}
	}
	c.request = weir.Request{Attributes: ask.attributes, Hits: ask.hits}
	if ctx.Done() != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		// A take that ends with ctx has no receipt of what it may hold nevertheless.
		ctx = context.WithoutCancel(ctx)
	}
	if err := g.decider.Do(ctx, store.Take, &c.request, &c.decision); err != nil {
		return err
	}
	c.Allowed = c.decision.Allowed
	c.Limits.SetDecision(&c.decision)
	if !c.decision.Receipt.IsZero() {
		c.held = hold(g.decider, &c.decision, &c.request)
	}
	return nil
}

func (g *guard) takeKey(ctx context.Context, ask *ask, c *Call) error {
	if ask.key == "" {
		return ErrNoKey
	}
	var r weir.Result
	var err error
	if ask.hits > 1 || ask.hits < 0 {
		r, err = g.limiter.AllowN(ctx, ask.key, ask.hits)
	} else {
		r, err = g.limiter.Allow(ctx, ask.key)
	}
	if err != nil {
		return err
	}
	c.Allowed = r.Allowed
	c.Limits.SetResult(g.name, &g.limits[r.Limit], &r)
	return nil
}
