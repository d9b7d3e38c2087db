package weir

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Limiter holds each key to one limit, or to several that admit a hit together
// ([And]). Make one with [NewLimiter] or [MustLimiter]. The methods of a nil or zero
// Limiter return an error, except Name, Limit and Limits, which return zero values, and
// Close, which does nothing.
//
// Each key has a counter of its own under each limit. The empty key is a key like any other.
//
// Allow, AllowN, AllowUpTo and AllowMember ask the limit: they count if the limit admits
// the hits, and change nothing if it does not. Wait and WaitN sleep until the hits are
// admitted. Check asks the limit and never counts. Record and RecordMember count
// without asking, for what has happened already, and can exceed the quota.
// Refund and RefundMember give back what was counted. Forget drops the key.
//
// A limit counts either hits or distinct members ([Members]). A limit on
// members needs the methods that take a member, and a limit on hits refuses
// them. Check and Forget are for both.
//
// The methods that ask or count return the numbers of the key as a [Result]. Being over the limit is a Result, not an
// error. Errors are bad input ([*fault.Fault]), a done context and a closed store. After an error Allowed is false
// and nothing was counted, unless the context ended during a call over the network. While the store cannot answer,
// the limiter's outage policy decides; see [WithOutage].
//
// A Limiter is safe for concurrent use. On a store in memory, and without an
// [Observer], the methods that return a Result do not allocate.
type Limiter struct {
	limit  *window.Compiled // the first of limits
	space  *store.Space     // of limit
	driver drive.Driver
	fast   *memstore.Store // the store in memory if do asks it without driver: one limit, no observer; else nil

	limits   []counted
	distinct bool // the limits count members
	policy   policy
	observer Observer
	waiting  waiting
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

// counted is one limit of a limiter, and where it counts.
type counted struct {
	limit *window.Compiled
	space *store.Space
}

// limiterCall is one call of a limiter on its way through the store. They are pooled.
type limiterCall struct {
	task  drive.Task
	ops   []store.Op // one for each limit
	of    []int
	bytes []byte // of the key and the member
	hits  int64  // that the caller asks for
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
	if o.store != nil && o.name == "" {
		faults = append(faults, fault.Newf("name", "missing: a limiter on a given store needs one, pass WithName"))
	}
	limits, own := o.limits(l)
	if err := append(faults, own...).Err(); err != nil {
		return nil, err
	}
	m := &Limiter{
		limit:    limits[0].limit,
		space:    limits[0].space,
		limits:   limits,
		distinct: l.Measure == window.Distinct,
		policy:   policy(o.outage),
		observer: o.observer,
		waiting:  waiting{most: cmp.Or(o.maxWaiting, maxWaiting)},
	}
	var err error
	if _, m.owned, err = o.openStore(&m.driver); err != nil {
		return nil, err
	}
	if m.observer == nil && len(limits) == 1 {
		m.fast = m.driver.Memory
	}
	m.calls.New = m.newCall
	return m, nil
}

// limits returns first and the further limits of o, ready for use, and what is wrong with
// them.
func (o *options) limits(first Limit) (limits []counted, faults fault.List) {
	compile := window.CompileFinal // whose error says the same of holds
	if o.compile != nil {
		compile = o.compile
	}
	known := map[string]bool{}
	for i, l := range append([]Limit{first}, o.further...) {
		limit, err := compile(l)
		own := fault.Of(err)
		if err == nil && limit.HoldLength() > 0 {
			own.Addf("hold", "a limiter gives no receipts that would end holds: use NewEngine")
		}
		id := identity(o.name, &l)
		switch {
		case i == 0:
		case first.Quota == window.Unlimited:
			own.Addf("", "a counter has no limits")
		case l.Quota == window.Unlimited:
			own.Addf("quota", "%d: want at least 0", l.Quota)
		case known[id]:
			own.Addf("window", "the limiter has a limit in a %s already, and both would be one counter", l.Window)
		case l.Measure != first.Measure:
			own.Addf("measure", "%v, and %v in the first limit: want the same", l.Measure, first.Measure)
		}
		if known[id] = true; i > 0 {
			for _, f := range own {
				_ = f.In(fmt.Sprintf("and[%d]", i-1))
			}
		}
		if faults = append(faults, own...); len(faults) == 0 {
			limits = append(limits, counted{limit, store.NewSpace(o.namespace, id, o.name, o.maxKeys)})
		}
	}
	return limits, faults
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

// Limit returns the limit of m, and the first one if there are several. It returns the
// zero Limit if m was not made by [NewLimiter].
func (m *Limiter) Limit() Limit {
	if m.ready() != nil {
		return Limit{}
	}
	return *m.limit.Limit
}

// Limits returns the limits of m, by their numbers in Result.Limit: the one that
// [NewLimiter] got, and those of [And].
func (m *Limiter) Limits() []Limit {
	if m.ready() != nil {
		return nil
	}
	limits := make([]Limit, len(m.limits))
	for i := range limits {
		limits[i] = *m.limits[i].limit.Limit
	}
	return limits
}

// Allow admits one hit and counts it, or denies it. It is AllowN with n = 1.
func (m *Limiter) Allow(ctx context.Context, key string) (r Result, err error) {
	err = m.do(ctx, store.Take, key, "", 1, &r)
	return r, err
}

// AllowN admits n hits together and counts them, or denies all of them. n must be
// at least 1. More hits than Result.Quota never fit, unless the limit starts at a count ([window.After]).
func (m *Limiter) AllowN(ctx context.Context, key string, n int64) (r Result, err error) {
	err = m.do(ctx, store.Take, key, "", n, &r)
	return r, err
}

// AllowUpTo admits as many of n hits as fit, and counts them. It returns how many: n if
// Result.Remaining was n or more, otherwise that many. If there is no room for any hit it returns 0, and
// the result of one hit that was denied. n must be at least 1.
func (m *Limiter) AllowUpTo(ctx context.Context, key string, n int64) (admitted int64, r Result, err error) {
	if m.ready() != nil || n < 1 || m.distinct {
		return 0, r, m.refused(ctx, store.Take, n)
	}
	began := m.now()
	a := m.call(store.Take, key, "", n)
	for i := range a.ops {
		a.ops[i].UpTo = true
	}
	if err = m.decide(ctx, a, key, nil, began, &r); r.Allowed {
		if admitted = n; len(a.task.Ops) > 0 {
			admitted = a.task.Ops[0].N
		}
	}
	m.end(a)
	return admitted, r, err
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
	for _, c := range m.limits {
		op := store.Op{Space: c.space, Limit: c.limit, Key: []byte(key)}
		if err := m.driver.Forget(ctx, &op); err != nil {
			return fmt.Errorf("weir: forget: %w", err)
		}
	}
	return nil
}

// op returns the op that finds key under the first limit.
func (m *Limiter) op(key string) *store.Op {
	return &store.Op{Space: m.space, Limit: m.limit, Key: []byte(key)}
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
		return m.refused(ctx, verb, n)
	}
	if m.fast == nil || len(key)+len(member) > limiterKey {
		return m.drive(ctx, verb, key, member, n, nil, r)
	}
	var room [limiterKey]byte
	var ops [1]store.Op
	ops[0].Space, ops[0].Limit, ops[0].N = m.space, m.limit, n
	ops[0].Key = room[:copy(room[:], key)]
	if member != "" {
		ops[0].Member = append(room[len(key):len(key)], member...)
	}
	if err = m.fast.Decide(ctx, verb, ops[:]); err != nil {
		return m.drive(ctx, verb, key, member, n, err, r)
	}
	r.Result = ops[0].Result
	return nil
}

// refused returns what refuse does, and tells the observer.
func (m *Limiter) refused(ctx context.Context, verb store.Verb, n int64) error {
	err := m.refuse(n)
	if m != nil && m.observer != nil {
		m.observer.Failed(ctx, verb, err)
	}
	return err
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

// drive decides a call that do cannot decide on the stack, with memory of the pool. err is the store's
// answer, if do has asked it already.
func (m *Limiter) drive(ctx context.Context, verb store.Verb, key, member string, n int64, err error, r *Result) error {
	began := m.now()
	a := m.call(verb, key, member, n)
	err = m.decide(ctx, a, key, err, began, r)
	m.end(a)
	return err
}

// now returns the time for the observer, if there is one.
func (m *Limiter) now() (t time.Time) {
	if m.observer != nil {
		t = time.Now()
	}
	return t
}

// decide asks the store, applies the outage policy where it cannot answer, and calls the
// observer, if there is one. It writes the answer into r, which is empty.
func (m *Limiter) decide(ctx context.Context, a *limiterCall, key string, err error, began time.Time, r *Result) error {
	m.driver.Run(ctx, &a.task, err)
	if err = a.task.Err; err == nil && m.mustCount && len(a.task.Ops) == 0 {
		err = a.task.Outage
	}
	if err != nil {
		err = fmt.Errorf("weir: %s: %w", a.task.Verb, err)
	} else {
		m.answer(r, &a.task)
	}
	if m.observer != nil {
		m.observe(ctx, a, r, err, key, began)
	}
	return err
}

// newCall returns a *limiterCall for the pool.
func (m *Limiter) newCall() any {
	a := &limiterCall{ops: make([]store.Op, len(m.limits)), of: make([]int, len(m.limits))}
	for i, c := range m.limits {
		a.ops[i].Space, a.ops[i].Limit, a.of[i] = c.space, c.limit, i
	}
	a.task.Ops, a.task.Of = a.ops, a.of
	return a
}

// call returns a call with an op for each limit. It has to be passed to end.
func (m *Limiter) call(verb store.Verb, key, member string, n int64) *limiterCall {
	a := m.calls.Get().(*limiterCall)
	a.bytes = append(append(a.bytes[:0], key...), member...)
	for i := range a.ops {
		op := &a.ops[i]
		op.N, op.UpTo, op.Key, op.Member = n, false, a.bytes[:len(key):len(key)], a.bytes[len(key):]
	}
	a.hits = n
	a.task.Verb, a.task.Policies = verb, &m.policy
	return a
}

// end gives a back to the pool, unless an outage has rearranged its ops.
func (m *Limiter) end(a *limiterCall) {
	if a.task.Outage == nil && a.task.Err == nil {
		m.calls.Put(a)
	}
}

// answer writes the answer of t, which was decided, into r.
func (m *Limiter) answer(r *Result, t *drive.Task) {
	if t.Outage != nil {
		r.Degraded, r.reason = true, t.Reason
	}
	switch asks := t.Verb == store.Take || t.Verb == store.Check; {
	case asks && t.Denied >= 0:
		r.Limit = t.Denied
		r.Quota, r.RetryAfter = m.limits[t.Denied].limit.Capacity(), t.RetryAfter
	case len(t.Ops) > 0:
		n := deciding(t.Ops)
		r.Limit, r.Result = t.Of[n], t.Ops[n].Result
	default:
		r.Quota, r.Allowed = m.limit.Capacity(), true
	}
}

// deciding returns the index of the op whose result is the answer of all ops: of those that
// deny, the one with the longest wait, and if none denies the one with the fewest hits that
// remain.
func deciding(ops []store.Op) (at int) {
	for i := 1; i < len(ops); i++ {
		r, now := &ops[i].Result, &ops[at].Result
		switch {
		case r.Allowed != now.Allowed:
			if now.Allowed {
				at = i
			}
		case r.Allowed && r.Remaining < now.Remaining:
			at = i
		case !r.Allowed && isLonger(r.RetryAfter, now.RetryAfter):
			at = i
		}
	}
	return at
}

// isLonger reports whether one wait is longer than another. [window.Never], which is negative, is the longest.
func isLonger(wait, than time.Duration) bool { return uint64(wait) > uint64(than) }

// observe calls the observer with the answer r of a, or with err.
func (m *Limiter) observe(ctx context.Context, a *limiterCall, r *Result, err error, key string, began time.Time) {
	verb, name := a.task.Verb, m.space.Name()
	if err != nil {
		m.observer.Failed(ctx, verb, err)
		return
	}
	d := Decision{Allowed: r.Allowed, Outcome: rule.Allow, Degraded: r.Degraded, DegradedReason: r.DegradedReason()}
	for i := range a.task.Ops {
		d.Usages = append(d.Usages, Usage{Rule: name, Kind: rule.KindLimit, Key: key, Hits: a.task.Ops[i].N, Result: a.task.Ops[i].Result})
	}
	if len(d.Usages) == 0 {
		d.Usages = []Usage{{Rule: name, Kind: rule.KindLimit, Key: key, Hits: a.hits, Result: r.Result}}
	}
	if !r.Allowed {
		d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = rule.Deny, name, r.RetryAfter, name
	}
	m.observer.Decided(ctx, verb, &d, time.Since(began))
}

// Close closes the limiter's store and frees its memory. It does not close a
// store that was given with [WithStore]. Close first records in that store what this
// process's memory has counted in outages and the store lacks; see [Engine.Close]. So close the
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
