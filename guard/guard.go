package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/weirhq/weir"
)

// Decider is what a guard asks of an engine, or of a client of a service. The methods do
// what those of [weir.Engine] with the same names do. It must be safe for concurrent use.
type Decider interface {
	Do(ctx context.Context, verb weir.Verb, r *weir.Request, d *weir.Decision) error
	Settle(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error)
	Renew(ctx context.Context, receipt weir.Receipt, r weir.Request) (weir.Decision, error)
}

// Guard decides calls. Make one with [ForLimiter] or [ForEngine]. It is safe for
// concurrent use.
type Guard struct {
	// One of the two is nil.
	limiter *weir.Limiter
	decider Decider

	name  string // of the limiter's policy
	limit weir.Limit
}

// ForLimiter returns a guard that holds each key to the limit of l. name is the name
// of the limit in headers and denials. ForLimiter refuses a limiter of distinct
// members.
func ForLimiter(l *weir.Limiter, name string) (*Guard, error) {
	g := &Guard{limiter: l, limit: l.Limit(), name: name}
	switch {
	case g.limit == weir.Limit{}:
		return nil, errors.New("guard: limiter: nil or zero: make one with weir.NewLimiter or weir.MustLimiter")
	case g.limit.Measure != 0:
		return nil, fmt.Errorf("guard: limiter: counts %v, want a limiter of hits", g.limit.Measure)
	case name == "":
		return nil, errors.New("guard: name: empty: want a name for the limit in headers, such as requests")
	}
	return g, nil
}

// ForEngine returns a guard that decides by the rules of d: an engine, or a client of a
// service. The caller closes d.
func ForEngine(d Decider) (*Guard, error) {
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
	return &Guard{decider: d}, nil
}

// ErrNoKey is the error of a call without a key. The empty key is never a key: all
// calls without one would share one counter.
var ErrNoKey = errors.New("guard: the call has no key for its limit")

// An EmptyAttributeError is the error of a call with an attribute whose value is
// empty. Rules that need the attribute would not match the call, and let it pass.
// Leave out attributes that a call may lack.
type EmptyAttributeError struct{ Name string }

func (e *EmptyAttributeError) Error() string {
	return fmt.Sprintf("guard: attribute %s is empty: leave it out if calls may lack it", e.Name)
}

// Ask is what a guard is asked.
type Ask struct {
	// Key is the key of a call for a limiter. It must not be empty.
	Key string

	// Attributes describe a call for an engine or a client. No value may be empty. The guard
	// keeps them until [Call.End].
	Attributes []weir.Attribute

	// Hits is the cost of the call; 0 means 1.
	Hits int64
}

// Take decides a call, counts it if it is allowed, and writes the answer into c. It
// overwrites c and reuses its memory, but c must have ended. If the call is allowed
// and holds something, c keeps that alive until [Call.End], which must be called.
//
// The error is [ErrNoKey] or an [*EmptyAttributeError] for a call that cannot be
// decided, and otherwise that of [weir.Limiter.AllowN] or [weir.Engine.Take].
// Nothing was counted then, unless the error is that of a client and says otherwise.
// While a store cannot answer there is no error: the outage policy decides, and
// c.Limits.Degraded has the reason.
func (g *Guard) Take(ctx context.Context, ask Ask, c *Call) error {
	c.Allowed, c.guard = false, g
	if g.limiter != nil {
		return g.takeKey(ctx, &ask, c)
	}
	for i := range ask.Attributes {
		if ask.Attributes[i].Value == "" {
			return &EmptyAttributeError{ask.Attributes[i].Name}
		}
	}
	c.request = weir.Request{Attributes: ask.Attributes, Hits: ask.Hits}
	if err := g.decider.Do(ctx, weir.Take, &c.request, &c.decision); err != nil {
		return err
	}
	c.Allowed = c.decision.Allowed
	c.Limits.SetDecision(&c.decision)
	if !c.decision.Receipt.IsZero() {
		c.held = hold(g.decider, &c.decision, &c.request)
	}
	return nil
}

func (g *Guard) takeKey(ctx context.Context, ask *Ask, c *Call) error {
	if ask.Key == "" {
		return ErrNoKey
	}
	var r weir.Result
	var err error
	if ask.Hits > 1 || ask.Hits < 0 {
		r, err = g.limiter.AllowN(ctx, ask.Key, ask.Hits)
	} else {
		r, err = g.limiter.Allow(ctx, ask.Key)
	}
	if err != nil {
		return err
	}
	c.Allowed = r.Allowed
	c.Limits.SetResult(g.name, &g.limit, &r)
	return nil
}
