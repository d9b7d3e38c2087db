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
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// Engine decides requests by a set of rules. Make one with [NewEngine]. The
// methods of a nil or zero Engine return an error, except Rules, which returns
// nil, and Close, which does nothing.
//
// Check, Take, Record and Refund run one verb for one request. Settle, Cancel and
// Renew end or prolong what a take holds. Do runs any verb and reuses a [Decision];
// DoAll runs many requests. Explain tells why a request is decided as it is. Usage
// reads, and Forget drops, what one rule has counted for one key. SetRules replaces
// the rules.
//
// All rules that match a request are evaluated. A limit that the request
// exceeds denies it, and so does a verdict whose outcome denies. The
// first rule that denies, in the order of the rules, sets the outcome. If no
// limit denies, the first verdict sets it; without a verdict it is "allow". See
// [rule.Kind] for the kinds of rules.
//
// Being over a limit is a Decision, not an error. Errors are bad input ([*fault.Fault]), a done context and a closed
// store. After an error nothing was counted, unless the context ended during a call over the network. While the store
// cannot answer, the outage policy of each rule decides ([rule.Rule.OnOutage]).
//
// An Engine is safe for concurrent use, SetRules included.
type Engine struct {
	driver    drive.Driver
	seals     seals
	owned     bool // Close closes the store
	namespace string
	observer  Observer
	holds     hook.HoldObserver // the observer, if it is one; or nil
	requests  requestObserver   // as holds
	rules     atomic.Pointer[plan.Rules]
	swap      sync.Mutex // held by SetRules
	calls     sync.Pool  // of *call
	batches   sync.Pool  // of *batch, or empty
	supplied  ruleSets   // that came with requests
	records   records    // of requests with an idempotency key

	lister hook.Lister // or nil
	shared bool        // the store is not in this process
}

// NewEngine returns an engine that decides by rules, which must not be nil. It
// counts in its own memory, unless [WithStore] gives a store.
func NewEngine(rules *rule.Set, options ...Option) (*Engine, error) {
	o, faults := applyEngine(options)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	e := &Engine{namespace: o.namespace, observer: o.observer}
	e.holds, _ = o.observer.(hook.HoldObserver)
	e.requests, _ = o.observer.(requestObserver)
	e.records.namespace = o.namespace
	hooks, owned, err := o.openStore(&e.driver)
	if err != nil {
		return nil, err
	}
	e.owned = owned
	e.lister, e.shared = hook.ListerOf(e.driver.Store), hooks.Memory == nil && hooks.SideStore == nil
	e.seals = newSeals(hooks.Keyed, o.local)
	e.calls.New = newCall
	if err := e.SetRules(rules); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// ready returns the rules in force. It returns an error for an engine that was not
// made by NewEngine.
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
// rule in shadow mode counts the actions that it admits itself. Rules after a
// verdict count only actions that are allowed; see [rule.Rule]'s CountRest.
func (e *Engine) Take(ctx context.Context, r Request) (d Decision, err error) {
	err = e.do(ctx, store.Take, &r, &d, &run.Options{})
	return d, err
}

// Check decides whether the action may happen, and counts nothing.
func (e *Engine) Check(ctx context.Context, r Request) (d Decision, err error) {
	err = e.do(ctx, store.Check, &r, &d, &run.Options{})
	return d, err
}

// Record counts the action in every rule that matches, without asking the
// limits. It is for what has happened already. The decision's Allowed is true.
func (e *Engine) Record(ctx context.Context, r Request) (d Decision, err error) {
	err = e.do(ctx, store.Record, &r, &d, &run.Options{})
	return d, err
}

// Refund gives the hits of an action back to every rule that matches, the newest
// hits first. If the request has Feedback, each rule gets back the hits that it
// states for that event instead; see [rule.Rule.Feedback].
func (e *Engine) Refund(ctx context.Context, r Request) (d Decision, err error) {
	err = e.do(ctx, store.Refund, &r, &d, &run.Options{})
	return d, err
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
func (e *Engine) Settle(ctx context.Context, receipt Receipt, r Request) (d Decision, err error) {
	r.Receipt = receipt
	err = e.do(ctx, store.Settle, &r, &d, &run.Options{})
	return d, err
}

// Cancel gives back what the take that receipt names has counted, as if the take
// had not happened. The request is that of the take. If Cancel finds a hold of the
// take, rules that do not hold give back their hits, too, as far as these hits are
// certainly still counted. Otherwise nothing changes. Held in each [Usage] reports
// whether Cancel found the hold of the rule.
func (e *Engine) Cancel(ctx context.Context, receipt Receipt, r Request) (d Decision, err error) {
	r.Receipt = receipt
	err = e.do(ctx, store.Cancel, &r, &d, &run.Options{})
	return d, err
}

// Renew moves the end of the holds of the take that receipt names: the length of
// each hold starts again now. The request has the attributes of the take. Held in
// each [Usage] reports whether Renew found the hold of the rule. If not, the
// renewal came too late.
func (e *Engine) Renew(ctx context.Context, receipt Receipt, r Request) (d Decision, err error) {
	r.Receipt = receipt
	err = e.do(ctx, store.Renew, &r, &d, &run.Options{})
	return d, err
}

// Do runs verb for r and writes the answer into d. It overwrites d and reuses
// the slices of d, so copy what has to outlive the next call. With a Decision
// that is used again and a store in memory, Do allocates only the Key of rules
// whose key has several attributes. After an error d holds no answer.
func (e *Engine) Do(ctx context.Context, verb store.Verb, r *Request, d *Decision) error {
	return e.do(ctx, verb, r, d, &run.Options{})
}

// do decides r, and writes the decision into d, if o allows its size.
func (e *Engine) do(ctx context.Context, verb store.Verb, r *Request, d *Decision, o *run.Options) error {
	d.reset()
	rules, err := e.ready()
	if err != nil {
		return err
	}
	var began time.Time
	if e.observer != nil {
		began = time.Now()
	}
	if r.Rules != nil {
		rules = e.rulesOf(r.Rules)
	}
	c := e.calls.Get().(*call)
	if err = e.read(c, rules, verb, r); err == nil && r.isOnce() {
		c.once, err = newOnceCall(&e.records, verb, r, o)
	}
	if err == nil {
		err = c.decide(ctx, &e.driver, d, o)
	}
	if e.observer != nil {
		e.observe(ctx, verb, c, r, d, err, began)
	}
	c.reset()
	e.calls.Put(c)
	return err
}

// maxShared is the most counters of one step in a store over the network, which decides nothing else meanwhile.
const maxShared = 1000

// fits returns a fault of path if it has too many counters for one step.
func (e *Engine) fits(path string, counters int) error {
	if counters > maxShared && e.shared {
		return fault.Newf(path, "count in %d counters: want at most %d in a store over the network", counters, maxShared)
	}
	return nil
}

// read reads r into c, as [call.read] does.
func (e *Engine) read(c *call, rules *plan.Rules, verb store.Verb, r *Request) error {
	err := c.read(rules, verb, r, &e.seals)
	if err == nil {
		err = e.fits("attributes", len(c.first.Ops)+len(c.second.Ops))
	}
	return err
}

// observe tells the observer, which there is, how c ended, which was read from r.
func (e *Engine) observe(ctx context.Context, verb store.Verb, c *call, r *Request, d *Decision, err error, began time.Time) {
	if err != nil {
		e.observer.Failed(ctx, verb, err)
		if ctx.Err() != nil { // the call may have reached the store
			e.ended(verb, r)
		}
		return
	}
	if e.requests != nil && !d.Replayed {
		e.requests.Requested(verb, r, d, c.plan.Matched, c.plan.Request.Values, began)
	}
	e.observer.Decided(ctx, verb, d, time.Since(began))
	if d.Degraded || d.foundHold() {
		e.ended(verb, r)
	}
}

// ended tells an observer that follows holds that those of r have ended, or were renewed, as far as is known.
func (e *Engine) ended(verb store.Verb, r *Request) {
	if verb.NeedsReceipt() && e.holds != nil {
		e.holds.Ended(verb, r.Receipt.Take.ID)
	}
}

// requestObserver is implemented by weir's own observers that also see requests.
type requestObserver interface {
	// Requested is called before Decided for each request that was decided and is not a replay. matched has the
	// indexes of the rules in d.Rules that match r, and values has the attributes of r as [ruleset.Compiled] indexes
	// them. The decision began at began. Requested must not keep its other arguments, and must be quick.
	Requested(verb store.Verb, r *Request, d *Decision, matched []int, values []string, began time.Time)
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

// rulesOf returns a set that came with a request, ready for use.
func (e *Engine) rulesOf(set *rule.Set) *plan.Rules {
	rules := e.rules.Load()
	if rules.Set == set {
		return rules
	}
	if known := e.supplied.get(set); known != nil {
		return known
	}
	rules, full := e.supplied.add(set, plan.NewRules(set, e.namespace, rules))
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
	if before := e.rules.Load(); before != nil && before.Overrides() != nil {
		planned = planned.WithOverrides(before.Overrides())
	}
	if planned.Holds() {
		e.seals.ready()
	}
	e.rules.Store(planned)
	e.supplied.drop()
	e.driver.Renew()
	e.driver.UseBans(e.namespace, planned.Bans())
	return nil
}

// Override gives certain keys limits of their own, instead of the rules'. It is for weir's
// service, which calls it with each change. Decisions that begin after it returns use the new set,
// which stays in force when the rules are replaced. An engine of the zero value ignores it.
func (e *Engine) Override(set *override.Set) {
	if e == nil || e.calls.New == nil {
		return
	}
	e.swap.Lock()
	defer e.swap.Unlock()
	e.rules.Store(e.rules.Load().WithOverrides(set))
}

// Close closes the engine's store and frees its memory. It does not close a
// store that was given with [WithStore]. Close first records in that store what this
// process's memory has counted in outages and the store lacks, or leaves that to others with the same [WithLocal]
// Option, so close the store after all of them. Closing twice is safe.
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

// Reports are the numbers of what local memory counted in outages, which is
// recorded in the store afterwards: see [WithLocal]. A distinct member counts
// as one hit. The zero value means that there was no outage.
type Reports struct {
	// Pending is the number of keys and members that wait for a report. It includes
	// those of an earlier process if the local store keeps its counters, as [durable.Store] does.
	Pending int

	// Recorded is the number of hits that were recorded in the store. Lost is
	// the number of those in reports without an answer: the store may have
	// counted them, so they are not sent again. Lost includes hits of an earlier process
	// of which it is not known whether they were sent.
	Recorded, Lost int64

	// Dropped is the number of hits that are not reported, because 100,000 keys
	// or 32 MB of them waited already, or because the last engine was closed meanwhile and the local store does
	// not keep its counters.
	Dropped int64
}

// Reports returns the numbers of the reports of all engines, limiters and counters with the engine's [WithLocal] Option, since the
// first of them was made.
func (e *Engine) Reports() Reports {
	if e == nil {
		return Reports{}
	}
	return Reports(e.driver.Reports())
}

// ruleSets are rule sets, ready for use. The zero value is empty. It is safe for
// concurrent use.
type ruleSets struct {
	mu    sync.RWMutex
	known map[*rule.Set]*plan.Rules // guarded by mu
}

// mostRuleSets is how many sets are remembered. When there are more, all are
// forgotten.
const mostRuleSets = 4096

// get returns set, ready for use, or nil if it is not known.
func (s *ruleSets) get(set *rule.Set) *plan.Rules {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[set]
}

// add adds set and returns it, ready for use. It reports whether there were too
// many sets, so that the others were forgotten.
func (s *ruleSets) add(set *rule.Set, rules *plan.Rules) (_ *plan.Rules, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[set]; known != nil {
		return known, false
	}
	full = len(s.known) >= mostRuleSets
	if s.known == nil || full {
		s.known = map[*rule.Set]*plan.Rules{}
	}
	s.known[set] = rules
	return rules, full
}

// drop forgets all sets.
func (s *ruleSets) drop() {
	s.mu.Lock()
	s.known = nil
	s.mu.Unlock()
}
