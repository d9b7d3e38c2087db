package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Namespace holds the metrics of one namespace. Make one with [Metrics.Namespace].
// It is safe for concurrent use.
type Namespace struct {
	m     *Metrics
	name  string
	label string // of metrics: the name, or rest
	rules int    // guarded by m.mu; in force
	bad   bool   // guarded by m.mu: the last attempt to load them failed

	decisions *cache[decision]
	matched   *cache[string] // by rule
	over      *cache[ruleMode]
	near      *cache[ruleMode]
	triggered *cache[string] // by rule
	holds     *cache[holdEvent]
	debts     *cache[string] // by rule
	bans      *cache[string] // by rule
	unmatched *cache[store.Verb]
	failed    *cache[store.Verb]
	degraded  prometheus.Counter
}

// rest is the label for namespaces without their own label, and for their rules. No namespace has
// this name.
const rest = "_other"

// Namespace returns the metrics of the namespace called name. The namespace called default always
// has its own label.
func (m *Metrics) Namespace(name string) *Namespace {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.served[name]; n != nil {
		return n
	}
	n := &Namespace{m: m, name: name, label: name}
	if name != "default" && m.labels >= m.bound {
		n.label = rest
	} else {
		m.labels++
	}
	m.served[name] = n
	byRule := func(v *prometheus.CounterVec) *cache[string] {
		return newCache(func(rule string) prometheus.Counter { return v.WithLabelValues(n.label, n.rule(rule)) })
	}
	byMode := func(v *prometheus.CounterVec) *cache[ruleMode] {
		return newCache(func(r ruleMode) prometheus.Counter { return v.WithLabelValues(n.label, n.rule(r.rule), r.mode) })
	}
	byVerb := func(v *prometheus.CounterVec) *cache[store.Verb] {
		return newCache(func(verb store.Verb) prometheus.Counter { return v.WithLabelValues(n.label, verb.String()) })
	}
	n.decisions = newCache(func(d decision) prometheus.Counter {
		outcome := d.outcome
		if n.label == rest && outcome != rule.Allow && outcome != rule.Deny {
			outcome = rest
		}
		return m.decisions.WithLabelValues(n.label, n.rule(d.rule), outcome, d.verb.String())
	})
	n.matched, n.triggered, n.debts, n.bans = byRule(m.matched), byRule(m.triggered), byRule(m.debts), byRule(m.bans)
	n.over, n.near = byMode(m.over), byMode(m.nearLimit)
	n.unmatched, n.failed = byVerb(m.unmatched), byVerb(m.failed)
	n.holds = newCache(func(h holdEvent) prometheus.Counter {
		return m.holds.WithLabelValues(n.label, n.rule(h.rule), h.event)
	})
	n.degraded = m.degraded.WithLabelValues(n.label)
	for _, result := range []string{"success", "failure"} {
		m.reloads.WithLabelValues(n.label, result) // so that both series exist from the start
	}
	return n
}

// rule returns the label for a rule of n.
func (n *Namespace) rule(name string) string {
	if n.label == rest && name != "" {
		return rest
	}
	return name
}

// Drop removes the metrics of a namespace that is not served any more.
func (n *Namespace) Drop() {
	m := n.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.served[n.name] != n {
		return
	}
	delete(m.served, n.name)
	if n.label == rest {
		m.totalRest()
		return
	}
	m.labels--
	gone := prometheus.Labels{"namespace": n.label}
	for _, v := range m.labelled {
		v.DeletePartialMatch(gone)
	}
}

// Decided counts one decision. It does not keep d.
func (n *Namespace) Decided(_ context.Context, verb store.Verb, d *weir.Decision, took time.Duration) {
	n.m.duration.Observe(took.Seconds())
	n.decisions.get(decision{d.Rule, d.Outcome, verb}).Inc()
	if d.Degraded {
		n.degraded.Inc()
	}
	if d.Unmatched {
		n.unmatched.get(verb).Inc()
	}
	if d.Replayed {
		return // the rules have counted nothing
	}
	if verb.NeedsReceipt() {
		n.ended(verb, d)
		return
	}
	if verb != store.Take && verb != store.Record {
		return
	}
	for i := range d.Usages {
		u := &d.Usages[i]
		n.matched.get(u.Rule).Inc()
		if u.Held || u.Banned {
			n.began(u)
		}
		switch {
		case !u.Allowed:
			n.over.get(ruleMode{u.Rule, mode(u)}).Inc()
		case n.m.isNear(d, u):
			n.near.get(ruleMode{u.Rule, mode(u)}).Inc()
		}
	}
	for _, rule := range d.Triggered {
		n.triggered.get(rule).Inc()
	}
}

// isNear reports whether the key of u is within its limit and near it. A small limit, such as one
// code a minute, has no such range, because ordinary use takes all of it.
func (m *Metrics) isNear(d *weir.Decision, u *weir.Usage) bool {
	if u.Kind != rule.KindLimit || u.Quota == window.Unlimited {
		return false
	}
	from := m.near * float64(u.Quota)
	return float64(u.Used) >= from && float64(u.Quota-1) >= from && !passes(d, u)
}

// passes reports whether hits that were counted in u without asking its limit, by a record or behind
// a verdict, have passed the limit.
func passes(d *weir.Decision, u *weir.Usage) bool {
	if u.Before+u.Hits <= u.Quota || d.Rules == nil {
		return false
	}
	i, ok := d.Rules.Find(u.Rule)
	return ok && d.Rules.Rule(i).Measure != window.Distinct // a member that is in the window is free
}

// Failed counts one request that was answered with an error.
func (n *Namespace) Failed(_ context.Context, verb store.Verb, _ error) { n.failed.get(verb).Inc() }

// mode returns the label for the mode of a rule.
func mode(u *weir.Usage) string {
	if u.Shadow {
		return "shadow"
	}
	return "enforce"
}

// Loaded records that rules came into force at a time.
func (n *Namespace) Loaded(rules int, at time.Time) {
	m := n.m
	m.mu.Lock()
	defer m.mu.Unlock()
	n.rules, n.bad = rules, false
	m.reloads.WithLabelValues(n.label, "success").Inc()
	m.envoyLoads.Inc()
	m.reloaded.WithLabelValues(n.label).Set(float64(at.UnixMilli()) / 1000)
	n.total()
}

// Refused records that rules could not be loaded, so that the old ones stay in
// force.
func (n *Namespace) Refused() {
	m := n.m
	m.mu.Lock()
	defer m.mu.Unlock()
	n.bad = true
	m.reloads.WithLabelValues(n.label, "failure").Inc()
	m.envoyFaults.Inc()
	n.total()
}

// total sets the gauges of n. It needs m.mu.
func (n *Namespace) total() {
	if n.label == rest {
		n.m.totalRest()
		return
	}
	n.m.rules.WithLabelValues(n.label).Set(float64(n.rules))
	n.m.success.WithLabelValues(n.label).Set(one(!n.bad))
}

// totalRest sets the gauges of the namespaces without their own label: the number of all their
// rules, and whether the last attempts for all succeeded. It needs m.mu.
func (m *Metrics) totalRest() {
	rules, good, some := 0, true, false
	for _, n := range m.served {
		if n.label == rest {
			rules, good, some = rules+n.rules, good && !n.bad, true
		}
	}
	if some {
		m.rules.WithLabelValues(rest).Set(float64(rules))
		m.success.WithLabelValues(rest).Set(one(good))
		return
	}
	m.rules.DeleteLabelValues(rest)
	m.success.DeleteLabelValues(rest)
}

// one returns 1 for true.
func one(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// holdEvent has the labels of a hold.
type holdEvent struct{ rule, event string }

// began counts a hold or a ban of a take or a record.
func (n *Namespace) began(u *weir.Usage) {
	if u.Held {
		n.holds.get(holdEvent{u.Rule, "held"}).Inc()
	}
	if u.Struck {
		n.bans.get(u.Rule).Inc()
	}
}

// ended counts the ends and renewals of the holds of a take.
func (n *Namespace) ended(verb store.Verb, d *weir.Decision) {
	event := map[store.Verb]string{store.Settle: "settled", store.Cancel: "cancelled", store.Renew: "renewed"}[verb]
	for i := range d.Usages {
		u := &d.Usages[i]
		switch {
		case u.Held:
			n.holds.get(holdEvent{u.Rule, event}).Inc()
			if verb == store.Settle && u.Used > u.Quota {
				n.debts.get(u.Rule).Inc()
			}
		case !d.Degraded && holds(d.Rules, u.Rule):
			n.holds.get(holdEvent{u.Rule, "late"}).Inc()
		}
	}
}

// holds reports whether takes hold under a rule.
func holds(rules *rule.Set, name string) bool {
	if rules == nil {
		return false
	}
	i, ok := rules.Find(name)
	return ok && rules.Rule(i).Holds()
}

// cache finds counters by their labels. A Prometheus vector hashes each label for every
// lookup, and would create the counters of a dropped namespace again. It is safe for concurrent
// use.
type cache[K comparable] struct {
	make func(K) prometheus.Counter

	mu  sync.RWMutex
	all map[K]prometheus.Counter // guarded by mu
}

func newCache[K comparable](make func(K) prometheus.Counter) *cache[K] {
	return &cache[K]{make: make, all: map[K]prometheus.Counter{}}
}

// get returns the counter with the labels k. It makes the counter if there is none.
func (c *cache[K]) get(k K) prometheus.Counter {
	c.mu.RLock()
	counter, ok := c.all[k]
	c.mu.RUnlock()
	if ok {
		return counter
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if counter, ok = c.all[k]; !ok {
		counter = c.make(k)
		c.all[k] = counter
	}
	return counter
}

// decision has the labels of a decision, and ruleMode those of a rule in a mode.
type (
	decision struct {
		rule, outcome string
		verb          store.Verb
	}
	ruleMode struct{ rule, mode string }
)
