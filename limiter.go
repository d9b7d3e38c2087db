package weir

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Limiter holds keys to one limit. Make one with [NewLimiter]. Its methods are
// safe for concurrent use and allocate nothing.
type Limiter struct {
	limit *window.Compiled
	space store.Space
	store store.Store
	local *memstore.Store // the store, where it is this process's memory
	owned bool
	calls sync.Pool // of *limiterCall
}

// limiterCall is the op of one call and the bytes of its key and member.
type limiterCall struct {
	ops   [1]store.Op
	bytes []byte
}

// NewLimiter makes a limiter that counts in memory, unless an option says
// otherwise. It refuses an impossible limit with a [fault.List].
func NewLimiter(l Limit, options ...Option) (*Limiter, error) {
	o, err := apply(options)
	if err != nil {
		return nil, err
	}
	limit, err := window.Compile(l)
	if err != nil {
		return nil, err
	}
	if o.store != nil && o.name == "" {
		return nil, fault.Newf("name", "missing: a limiter in a shared store needs one, give WithName")
	}
	m := &Limiter{limit: limit, store: o.store}
	m.space = store.Space{ID: spaceID(o.name, &l), Name: o.name, MaxKeys: o.maxKeys}
	if m.store == nil {
		m.store, m.owned = memstore.New(), true
	}
	m.local, _ = m.store.(*memstore.Store)
	m.calls.New = func() any { return new(limiterCall) }
	return m, nil
}

// spaceID is the identity of a limiter's counters, as [rule.Set.ID] is of a
// rule's.
func spaceID(name string, l *window.Limit) string {
	after := ""
	if l.After != (window.After{}) {
		after = l.After.Window.ID()
	}
	return string(rule.AppendKey(nil, name, l.Measure.String(), l.Window.ID(), after))
}

// MustLimiter is [NewLimiter] for limits that are written in the program; it
// panics when the limit is impossible.
func MustLimiter(l Limit, options ...Option) *Limiter {
	m, err := NewLimiter(l, options...)
	if err != nil {
		panic(err)
	}
	return m
}

// Allow takes one hit. With an error nothing is known, and Allowed is false.
func (m *Limiter) Allow(ctx context.Context, key string) (Result, error) {
	return m.do(ctx, store.Take, key, "", 1)
}

// AllowN takes n hits, all or none. n = 0 only looks.
func (m *Limiter) AllowN(ctx context.Context, key string, n int64) (Result, error) {
	return m.do(ctx, store.Take, key, "", n)
}

// AllowMember takes a member, for limits that count distinct ones. Those take
// nothing else.
func (m *Limiter) AllowMember(ctx context.Context, key, member string) (Result, error) {
	return m.do(ctx, store.Take, key, member, 1)
}

// Check tells whether one hit, or a member that is new, would be admitted, and
// counts nothing.
func (m *Limiter) Check(ctx context.Context, key string) (Result, error) {
	return m.do(ctx, store.Check, key, "", 1)
}

// Record counts n hits whatever the limit, for what has happened already.
func (m *Limiter) Record(ctx context.Context, key string, n int64) (Result, error) {
	return m.do(ctx, store.Record, key, "", n)
}

// Refund gives n hits back, the newest ones first.
func (m *Limiter) Refund(ctx context.Context, key string, n int64) (Result, error) {
	return m.do(ctx, store.Refund, key, "", n)
}

// Reset forgets the key.
func (m *Limiter) Reset(ctx context.Context, key string) error {
	if err := m.store.Forget(ctx, &store.Op{Space: &m.space, Limit: m.limit, Key: []byte(key)}); err != nil {
		return fmt.Errorf("weir: reset: %w", err)
	}
	return nil
}

// ErrWouldWait is what Wait answers when waiting cannot help: the quota is 0,
// or the context ends before the hit would fit.
var ErrWouldWait = errors.New("weir: the hit does not fit before the context ends")

// Wait takes one hit as soon as it fits. Callers that wait on one key are
// served in no particular order. It returns at once with [ErrWouldWait] when
// ctx ends too early for it.
func (m *Limiter) Wait(ctx context.Context, key string) error {
	for {
		r, err := m.Allow(ctx, key)
		if err != nil || r.Allowed {
			return err
		}
		end, ends := ctx.Deadline()
		if r.RetryAfter == window.Never || ends && time.Until(end) < r.RetryAfter {
			return ErrWouldWait
		}
		timer := time.NewTimer(r.RetryAfter)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (m *Limiter) do(ctx context.Context, verb store.Verb, key, member string, n int64) (r Result, err error) {
	if n < 0 {
		return Result{}, fault.Newf("hits", "%d: want a number from 0", n)
	}
	if m.limit.Distinct() && member == "" && n > 0 && verb != store.Check {
		return Result{}, fault.Newf("member", "missing: the limit counts different ones, ask with AllowMember")
	}
	if m.local != nil {
		if r, err = m.local.One(ctx, verb, &m.space, m.limit, key, member, n); err != nil {
			err = fmt.Errorf("weir: %s: %w", verb, err)
		}
		return r, err
	}
	c := m.calls.Get().(*limiterCall)
	c.bytes = append(append(c.bytes[:0], key...), member...)
	c.ops[0] = store.Op{Space: &m.space, Limit: m.limit, N: n, Key: c.bytes[:len(key):len(key)], Member: c.bytes[len(key):]}
	err = m.store.Do(ctx, verb, c.ops[:])
	r = c.ops[0].Result
	m.calls.Put(c)
	if err != nil {
		return Result{}, fmt.Errorf("weir: %s: %w", verb, err)
	}
	return r, nil
}

// Close frees the limiter's memory, unless its store was given.
func (m *Limiter) Close() error {
	if !m.owned {
		return nil
	}
	return m.store.Close()
}
