package weir

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Engine decides requests by a set of rules. Make one with [NewEngine]. The
// methods of a nil or zero Engine return an error, except Rules, which returns
// nil, and Close, which does nothing.
//
// Check, Take, Record and Refund run one verb for one request. Settle, Cancel and
// Renew end or prolong what a take holds. Do runs any verb and reuses a [Decision]; DoAll runs many requests. Explain tells why a request
// is decided as it is. Usage reads, and Forget drops, what one rule has counted
// for one key. SetRules replaces the rules.
//
// All rules that match a request are evaluated. A limit that the request
// exceeds denies it, and so does a verdict whose outcome denies. The
// first rule that denies, in the order of the rules, sets the outcome. If no
// limit denies, the first verdict sets it; without a verdict it is "allow". See
// [rule.Kind] for the kinds of rules.
//
// Being over a limit is a Decision, not an error. Errors are bad input
// ([*fault.Fault]), a done context and a closed store. After an error nothing
// was counted. While the store cannot answer, the outage policy of each rule
// decides ([rule.Rule.OnOutage]).
//
// An Engine is safe for concurrent use, SetRules included.
type Engine struct {
	driver    drive.Driver
	seals     seals
	owned     bool // Close closes the store
	namespace string
	memory    *memstore.Store // behind the store, for short; nil: requests go the general way
	observer  Observer
	rules     atomic.Pointer[plan.Rules]
	swap      sync.Mutex // held by SetRules
	calls     sync.Pool  // of *call
	batches   sync.Pool  // of *batch, or empty
	shorts    sync.Pool  // of *short
	others    others
}

// NewEngine returns an engine that decides by rules, which must not be nil. It
// counts in memory of its own, unless [WithStore] gives a store.
func NewEngine(rules *rule.Set, options ...Option) (*Engine, error) {
	o, faults := applyEngine(options)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	e := &Engine{namespace: o.namespace, observer: o.observer}
	e.owned = o.openStore(&e.driver)
	hooks := hook.Of(e.driver.Store)
	e.memory, e.seals = hooks.Memory, newSeals(hooks.Keyed)
	e.calls.New = func() any { return new(call) }
	e.shorts.New = func() any { return new(short) }
	if err := e.SetRules(rules); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// ready returns the rules in force. The error says what to do about an engine
// that was not made by NewEngine.
func (e *Engine) ready() (*plan.Rules, error) {
	if e != nil {
		if rules := e.rules.Load(); rules != nil {
			return rules, nil
		}
	}
	return nil, fault.Newf("engine", "nil or zero: make one with weir.NewEngine")
}

// Take decides whether the action may happen. An allowed action is counted in
// every rule that matches. A denied one is counted in no limit, except in limits
// with [rule.Rule.CountDenied]. Counters and triggers count it all the same. A
// rule in shadow mode counts the actions that it admits itself. Rules behind a
// verdict count only actions that are allowed; see [rule.Rule]'s CountRest.
func (e *Engine) Take(ctx context.Context, r Request) (Decision, error) {
	return e.decide(ctx, store.Take, &r)
}

// Check decides whether the action may happen, and counts nothing.
func (e *Engine) Check(ctx context.Context, r Request) (Decision, error) {
	return e.decide(ctx, store.Check, &r)
}

// Record counts the action in every rule that matches, without asking the
// limits. It is for what has happened already. The decision's Allowed is true.
func (e *Engine) Record(ctx context.Context, r Request) (Decision, error) {
	return e.decide(ctx, store.Record, &r)
}

// Refund gives the hits of an action back to every rule that matches, the newest
// hits first. If the request has Feedback, each rule gets back the hits that it
// states for that event instead; see [rule.Rule.Feedback].
func (e *Engine) Refund(ctx context.Context, r Request) (Decision, error) {
	return e.decide(ctx, store.Refund, &r)
}

// Settle ends the holds of the take that receipt names, at their real cost. The
// request has the attributes of the take. The cost is the attribute that a rule
// sums, if the request has it; otherwise Hits, if it is not 0; otherwise the amount
// held. A cost above the amount held counts in full, even past the quota. Rules
// that do not hold keep what they counted.
//
// Held in each [Usage] of the decision reports whether Settle found the hold of
// the rule. A hold that was settled or cancelled before, or has ended by itself, is
// not found. Then nothing changes, so that Settle can be repeated.
func (e *Engine) Settle(ctx context.Context, receipt Receipt, r Request) (Decision, error) {
	r.Receipt = receipt
	return e.decide(ctx, store.Settle, &r)
}

// Cancel gives back what the take that receipt names has counted, as if the take
// had not happened. The request is that of the take. If Cancel finds a hold of the
// take, rules that do not hold give back their hits, too, as far as these hits are
// certainly still counted. Otherwise nothing changes. Held in each [Usage] reports whether Cancel found the hold of the rule.
func (e *Engine) Cancel(ctx context.Context, receipt Receipt, r Request) (Decision, error) {
	r.Receipt = receipt
	return e.decide(ctx, store.Cancel, &r)
}

// Renew moves the end of the holds of the take that receipt names: the length of
// each hold starts again now. The request has the attributes of the take. Held in
// each [Usage] reports whether Renew found the hold of the rule. If not, the
// renewal came too late.
func (e *Engine) Renew(ctx context.Context, receipt Receipt, r Request) (Decision, error) {
	r.Receipt = receipt
	return e.decide(ctx, store.Renew, &r)
}

func (e *Engine) decide(ctx context.Context, verb store.Verb, r *Request) (Decision, error) {
	var d Decision
	err := e.one(ctx, verb, r, &d, &run.Options{})
	return d, err
}

// Do runs verb for r and writes the answer into d. It overwrites d and reuses
// the slices of d, so copy what has to outlive the next call. With a Decision
// that is used again and a store in memory, Do allocates only the Key of rules
// whose key has several attributes. After an error d holds no answer.
func (e *Engine) Do(ctx context.Context, verb store.Verb, r *Request, d *Decision) error {
	return e.one(ctx, verb, r, d, &run.Options{})
}

// one decides r by itself.
func (e *Engine) one(ctx context.Context, verb store.Verb, r *Request, d *Decision, o *run.Options) error {
	rules, err := e.ready()
	if err != nil {
		return err
	}
	var began time.Time
	if e.observer != nil {
		began = time.Now()
	}
	if r.Rules != nil {
		rules = e.prepared(r.Rules)
	}
	d.reset()
	if e.isShort(rules, verb, r) {
		err = e.short(ctx, rules, verb, r, d, o)
	} else {
		err = e.general(ctx, rules, verb, r, nil, d, o, nil)
	}
	if e.observer != nil {
		e.tell(ctx, verb, d, err, began)
	}
	return err
}

// isShort reports whether r, with verb, may have a short form under rules: it is a valid
// check, take or record.
func (e *Engine) isShort(rules *plan.Rules, verb store.Verb, r *Request) bool {
	return e.memory != nil && rules.Width() <= shortValues && verb <= store.Record &&
		r.Hits >= 0 && r.Feedback == "" && r.Receipt.IsZero()
}

// short decides r, which may have a short form, and has the general way decide it where
// it has none.
func (e *Engine) short(ctx context.Context, rules *plan.Rules, verb store.Verb, r *Request, d *Decision, o *run.Options) (err error) {
	s := e.shorts.Get().(*short)
	values := s.values[:rules.Width()]
	fill(values, rules.Compiled, r.Attributes)
	matched := rules.Match(values, s.matched[:0], false)
	if !s.plan(rules, matched, values, min(max(r.Hits, 1), window.MaxHits+1)) {
		err = e.general(ctx, rules, verb, r, values, d, o, nil)
	} else if err = checkSize(rules, matched, values, o); err == nil {
		ops := s.ops[:len(matched)]
		if err = e.memory.Call(ctx, verb, ops); err == nil {
			v := verdict{rules: rules, verb: verb, values: values, matched: matched, ops: ops, of: matched, first: -1, denied: -1}
			v.write(d)
		} else {
			err = e.general(ctx, rules, verb, r, values, d, &run.Options{}, err) // o has checked the size, and reserved it once
		}
	}
	clear(values)
	e.shorts.Put(s)
	return err
}

// checkSize returns the error of o if it does not allow the size of a decision by the rules
// that match values.
func checkSize(rules *plan.Rules, matched []int, values []string, o *run.Options) error {
	if !o.IsBounded() {
		return nil
	}
	var size run.Size
	addUsages(&size, rules, matched, values)
	return o.Check(size)
}

// general decides any request. values is the request's vector if it is known already, or
// nil. answer is the store's answer if it has been asked already: an error, or nil.
func (e *Engine) general(ctx context.Context, rules *plan.Rules, verb store.Verb, r *Request, values []string, d *Decision, o *run.Options, answer error) error {
	c := e.calls.Get().(*call)
	err := c.plan(rules, &e.seals, verb, r, values)
	if err == nil && o.IsBounded() {
		var size run.Size
		addPlan(&size, &c.request)
		err = o.Check(size)
	}
	if err == nil {
		err = c.run(ctx, &e.driver, answer)
	}
	if err == nil {
		c.write(d, true)
	}
	c.reset()
	e.calls.Put(c)
	return err
}

// tell calls the observer, which there is.
func (e *Engine) tell(ctx context.Context, verb store.Verb, d *Decision, err error, began time.Time) {
	if err != nil {
		e.observer.Failed(ctx, verb, err)
	} else {
		e.observer.Decided(ctx, verb, d, time.Since(began))
	}
}

// Rules returns the rules in force. It returns nil for an engine that was not
// made by [NewEngine].
func (e *Engine) Rules() *rule.Set {
	rules, err := e.ready()
	if err != nil {
		return nil
	}
	return rules.Set
}

// prepared returns a set that came with a request, ready for use.
func (e *Engine) prepared(set *rule.Set) *plan.Rules {
	if rules := e.rules.Load(); rules.Set == set {
		return rules
	}
	if rules := e.others.get(set); rules != nil {
		return rules
	}
	rules, full := e.others.add(set, plan.NewRules(set, e.namespace, e.rules.Load()))
	if rules.Holds() {
		e.seals.ready()
	}
	if full {
		e.driver.Renew() // it knows the limits of the sets that are forgotten
	}
	return rules
}

// SetRules replaces the rules. Requests that start after it returns are decided
// by the new rules. A rule keeps its counters if it has the same identity in the
// old rules and the new: see [rule.Rule]. Nil rules and the zero Set are an
// error, and the old rules stay in force.
func (e *Engine) SetRules(rules *rule.Set) error {
	if rules == nil || rules.Compiled().IsZero() {
		return fault.Newf("rules", "no set: want one that rule.New or rulefile.Load returned")
	}
	if e == nil || e.calls.New == nil {
		_, err := e.ready()
		return err
	}
	e.swap.Lock()
	defer e.swap.Unlock()
	planned := plan.NewRules(rules, e.namespace, e.rules.Load())
	if planned.Holds() {
		e.seals.ready()
	}
	e.rules.Store(planned)
	e.others.drop()
	e.driver.Renew()
	return nil
}

// Close closes the engine's store and frees its memory. It does not close a
// store that was given with [WithStore]. With [WithLocal], Close first records in
// the store what the local store has counted and the store lacks, so close the
// store after the engine. Closing twice is safe.
func (e *Engine) Close() error {
	if e == nil {
		return nil
	}
	e.driver.Close()
	if !e.owned {
		return nil
	}
	return e.driver.Store.Close()
}

// ErrClosed is wrapped in the errors of calls whose store is closed. Test for it
// with [errors.Is].
var ErrClosed = store.ErrClosed
