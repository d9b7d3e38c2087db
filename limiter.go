package weir

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Limiter holds each key to one limit. Make one with [NewLimiter] or
// [MustLimiter]. The methods of a nil or zero Limiter return an error, except
// Limit, which returns the zero Limit, and Close, which does nothing.
//
// Each key has its own counter. The empty key is a key like any other.
//
// Allow, AllowN and AllowMember ask the limit: they count if the limit admits
// the hits, and change nothing if it does not. Wait sleeps until a hit is
// admitted. Check asks the limit and never counts. Record and RecordMember count
// without asking, for what has happened already, and can exceed the quota.
// Refund and RefundMember give back what was counted. Forget drops the key.
//
// A limit counts either hits or distinct members ([Members]). A limit on
// members needs the methods that take a member, and a limit on hits refuses
// them. Check and Forget are for both.
//
// The methods that ask or count return the numbers of the key as a [Result].
// Being over the limit is a Result, not an error. Errors are bad input ([*fault.Fault]), a done
// context and a closed store. After an error nothing was counted and Allowed is
// false. While the store cannot answer, the limiter's outage policy decides; see
// [WithOutage].
//
// A Limiter is safe for concurrent use. On a store in memory, and without an
// [Observer], the methods that return a Result do not allocate.
type Limiter struct {
	limit  *window.Compiled
	space  *store.Space
	driver drive.Driver
	memory *memstore.Store // of the store; nil: there is none, or there is an observer

	distinct bool // the limit counts members
	policy   policy
	observer Observer
	owned    bool      // Close closes the store
	calls    sync.Pool // of *limiterCall

	// mustCount makes an outage an error if nothing was asked instead of the
	// store: a counter has nothing else to answer.
	mustCount bool
}

// policy is one outage policy for all ops.
type policy rule.Outage

// OnOutage implements [drive.Policies].
func (p *policy) OnOutage(int) rule.Outage { return rule.Outage(*p) }

// limiterCall is one call of a limiter on its way through the store. They are pooled.
type limiterCall struct {
	task  drive.Task
	op    [1]store.Op
	of    [1]int
	bytes []byte // of the key and the member
}

// NewLimiter returns a limiter that counts in its own memory, unless
// [WithStore] gives a store. The error holds a [*fault.Fault] for everything that is
// wrong with the limit and the options; see [fault.Of]. [window.Unlimited] is
// refused: use [NewCounter].
func NewLimiter(l Limit, options ...LimiterOption) (*Limiter, error) {
	if l.Quota == window.Unlimited {
		return nil, fault.Newf("quota", "%d: want at least 0; NewCounter counts without a limit", l.Quota)
	}
	return newLimiter(l, options)
}

func newLimiter(l Limit, options []LimiterOption) (*Limiter, error) {
	o, faults := applyLimiter(options)
	compile := window.CompileFinal // whose error says the same of holds
	if o.compile != nil {
		compile = o.compile
	}
	limit, err := compile(l)
	if err == nil && limit.HoldLength() > 0 {
		faults = append(faults, fault.Newf("hold", "a limiter gives no receipts that would end holds: use NewEngine"))
	}
	if o.store != nil && o.name == "" {
		faults = append(faults, fault.Newf("name", "missing: a limiter on a given store needs one, pass WithName"))
	}
	if err := errors.Join(err, faults.Err()); err != nil {
		return nil, err
	}
	m := &Limiter{
		limit:    limit,
		space:    store.NewSpace(o.namespace, identity(o.name, &l), o.name, o.maxKeys),
		distinct: limit.Measure == window.Distinct,
		policy:   policy(o.outage),
		observer: o.observer,
	}
	var hooks hook.Hooks
	if hooks, m.owned = o.openStore(&m.driver); m.observer == nil {
		m.memory = hooks.Memory
	}
	m.calls.New = func() any { return new(limiterCall) }
	return m, nil
}

// identity returns the identity of a limiter's counters, as the identity of a rule ([rule.Rule]) does
// for those of a rule.
func identity(name string, l *Limit) string {
	after := ""
	if l.After != (window.After{}) {
		after = l.After.Window.ID()
	}
	return string(ruleset.AppendKey(nil, name, l.Measure.String(), l.Window.ID(), after))
}

// MustLimiter is like [NewLimiter] but panics when the limit or an option is
// invalid. It is for limits that are written in the program.
func MustLimiter(l Limit, options ...LimiterOption) *Limiter {
	m, err := NewLimiter(l, options...)
	if err != nil {
		panic(err)
	}
	return m
}

// Name returns the name that [WithName] sets. It returns "" if m was not made by
// [NewLimiter].
func (m *Limiter) Name() string {
	if m.ready() != nil {
		return ""
	}
	return m.space.Name()
}

// Limit returns the limit of m. It returns the zero Limit if m was not made by
// [NewLimiter].
func (m *Limiter) Limit() Limit {
	if m.ready() != nil {
		return Limit{}
	}
	return *m.limit.Limit
}

// Allow admits one hit and counts it, or denies it. It is AllowN with n = 1.
func (m *Limiter) Allow(ctx context.Context, key string) (r Result, err error) {
	err = m.do(ctx, store.Take, key, "", 1, &r)
	return r, err
}

// AllowN admits n hits together and counts them, or denies all of them. n must be
// at least 1. More hits than Result.Quota never fit.
func (m *Limiter) AllowN(ctx context.Context, key string, n int64) (r Result, err error) {
	err = m.do(ctx, store.Take, key, "", n, &r)
	return r, err
}

// AllowMember admits one use of a member and counts it, or denies it. It is for
// limits that count distinct members. A member that is in the window already is
// always admitted. The empty member is refused.
func (m *Limiter) AllowMember(ctx context.Context, key, member string) (r Result, err error) {
	err = m.do(ctx, store.Take, key, member, 1, &r)
	return r, err
}

// Check reports whether one hit, or one member that is not in the window yet,
// would be admitted. It counts nothing.
func (m *Limiter) Check(ctx context.Context, key string) (r Result, err error) {
	err = m.do(ctx, store.Check, key, "", 1, &r)
	return r, err
}

// Record counts n hits, at least 1, without asking the limit. The result's
// Allowed is true.
func (m *Limiter) Record(ctx context.Context, key string, n int64) (r Result, err error) {
	err = m.do(ctx, store.Record, key, "", n, &r)
	return r, err
}

// RecordMember counts one use of a member without asking the limit. When there
// are more members than the quota, it drops those whose last use is the oldest.
func (m *Limiter) RecordMember(ctx context.Context, key, member string) (r Result, err error) {
	err = m.do(ctx, store.Record, key, member, 1, &r)
	return r, err
}

// Refund gives back n hits, at least 1, the newest ones first. It gives back at
// most the hits that are in the window.
func (m *Limiter) Refund(ctx context.Context, key string, n int64) (r Result, err error) {
	err = m.do(ctx, store.Refund, key, "", n, &r)
	return r, err
}

// RefundMember gives back one use of a member. The member leaves the window when
// all its uses were given back.
func (m *Limiter) RefundMember(ctx context.Context, key, member string) (r Result, err error) {
	err = m.do(ctx, store.Refund, key, member, 1, &r)
	return r, err
}

// Forget drops the counter of the key, so that the key is as good as unused.
func (m *Limiter) Forget(ctx context.Context, key string) error {
	if err := m.ready(); err != nil {
		return err
	}
	if err := m.driver.Forget(ctx, m.op(key)); err != nil {
		return fmt.Errorf("weir: forget: %w", err)
	}
	return nil
}

// op returns the op that finds key.
func (m *Limiter) op(key string) *store.Op {
	return &store.Op{Space: m.space, Limit: m.limit, Key: []byte(key)}
}

// ErrWouldWait is returned by [Limiter.Wait] when waiting cannot help: the quota
// is 0, or the hit does not fit before the deadline of the context.
var ErrWouldWait = errors.New("weir: the hit does not fit before the context ends")

// Wait sleeps until the limit admits one hit, counts it and returns nil. It
// returns [ErrWouldWait] at once when the hit does not fit before ctx's deadline,
// or never fits. It returns ctx.Err() when ctx is done first. Callers that wait
// on the same key are served in no particular order. While an outage policy
// denies, Wait tries again every second.
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

// ready returns the error of a limiter that was not made by NewLimiter.
func (m *Limiter) ready() error {
	if m != nil && m.limit != nil {
		return nil
	}
	return fault.Newf("limiter", "nil or zero: make one with weir.NewLimiter or weir.MustLimiter")
}

// limiterKey is the most bytes of a key and a member that are on the stack.
const limiterKey = 64

// do decides and writes the answer into r, which is empty.
func (m *Limiter) do(ctx context.Context, verb store.Verb, key, member string, n int64, r *Result) (err error) {
	if m == nil || m.limit == nil || n < 1 || m.distinct != (member != "") && verb != store.Check {
		if err = m.refuse(n); m != nil && m.observer != nil {
			m.observer.Failed(ctx, verb, err)
		}
		return err
	}
	if m.memory == nil || len(key)+len(member) > limiterKey {
		*r, err = m.observe(ctx, verb, key, member, n)
		return err
	}
	var room [limiterKey]byte
	var ops [1]store.Op
	ops[0].Space, ops[0].Limit, ops[0].N = m.space, m.limit, n
	ops[0].Key = room[:copy(room[:], key)]
	if member != "" {
		ops[0].Member = append(room[len(key):len(key)], member...)
	}
	if err = m.memory.Decide(ctx, verb, ops[:]); err != nil {
		*r, err = m.drive(ctx, verb, key, member, n, err)
		return err
	}
	r.Result = ops[0].Result
	return nil
}

// refuse returns the fault of a call that do refuses.
func (m *Limiter) refuse(n int64) error {
	if err := m.ready(); err != nil {
		return err
	}
	switch {
	case n < 1:
		return fault.Newf("hits", "%d: want at least 1; Check looks without counting", n)
	case m.distinct:
		return fault.Newf("member", "missing: the limit counts distinct members, use AllowMember, RecordMember or RefundMember")
	}
	return fault.Newf("member", "the limit counts hits: use Allow, Record or Refund")
}

// drive asks the store and applies the outage policy where it cannot answer.
// err is the store's answer, if it has been asked already.
func (m *Limiter) drive(ctx context.Context, verb store.Verb, key, member string, n int64, err error) (r Result, _ error) {
	a := m.calls.Get().(*limiterCall)
	a.bytes = append(append(a.bytes[:0], key...), member...)
	a.task.Verb, a.task.Policies = verb, &m.policy
	a.op[0] = store.Op{
		Space: m.space, Limit: m.limit, N: n,
		Key: a.bytes[:len(key):len(key)], Member: a.bytes[len(key):],
	}
	a.task.Ops, a.task.Of = a.op[:], a.of[:]
	m.driver.Run(ctx, &a.task, err)
	if err = a.task.Err; err == nil && m.mustCount && len(a.task.Ops) == 0 {
		err = a.task.Outage
	}
	if err != nil {
		err = fmt.Errorf("weir: %s: %w", verb, err)
	} else {
		r = m.result(&a.task)
	}
	a.task.Reset()
	m.calls.Put(a)
	return r, err
}

// result returns the answer of t, which was decided.
func (m *Limiter) result(t *drive.Task) Result {
	var r Result
	if t.Outage != nil {
		r.degrade(t.Reason)
	}
	switch {
	case len(t.Ops) > 0:
		r.Result = t.Ops[0].Result
	case t.Denied >= 0 && (t.Verb == store.Take || t.Verb == store.Check):
		r.Quota, r.RetryAfter = m.limit.Capacity(), t.RetryAfter
	default:
		r.Quota, r.Allowed = m.limit.Capacity(), true
	}
	return r
}

// observe decides any call, and calls the observer, if there is one.
func (m *Limiter) observe(ctx context.Context, verb store.Verb, key, member string, n int64) (Result, error) {
	began := time.Now()
	r, err := m.drive(ctx, verb, key, member, n, nil)
	if m.observer == nil {
		return r, err
	}
	if err != nil {
		m.observer.Failed(ctx, verb, err)
		return r, err
	}
	name := m.space.Name()
	d := Decision{
		Allowed: r.Allowed, Outcome: rule.Allow, Degraded: r.Degraded, DegradedReason: r.DegradedReason(),
		Usages: []Usage{{Rule: name, Kind: rule.KindLimit, Key: key, Hits: n, Result: r.Result}},
	}
	if !r.Allowed {
		d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = rule.Deny, name, r.RetryAfter, name
	}
	m.observer.Decided(ctx, verb, &d, time.Since(began))
	return r, nil
}

// Close closes the limiter's store and frees its memory. It does not close a
// store that was given with [WithStore]. Close first records in that store what this
// process's memory has counted in outages and the store lacks, so close the
// store after the limiter. Closing twice is safe.
func (m *Limiter) Close() error {
	if m == nil {
		return nil
	}
	m.driver.Close()
	if !m.owned {
		return nil
	}
	return m.driver.Store.Close()
}
