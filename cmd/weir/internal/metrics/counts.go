package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
)

// Counts has what was counted since the start for one rule, or for a namespace.
type Counts struct {
	// Matched is the takes and records that a rule counted, or the takes of a namespace.
	Matched int64 `json:"matched"`

	// Denied is those among them that went over the limit of a rule, or that a namespace did not
	// answer with [rule.Allow].
	Denied int64 `json:"denied"`

	// Shadow is the takes that a rule in shadow mode would have denied, or the takes of a namespace
	// that no rule matched.
	Shadow int64 `json:"shadow"`

	// Near is the takes and records after which a key was near the limit, or the takes of a namespace
	// that were decided without the store.
	Near int64 `json:"near"`
}

// EachCount calls f with the counts of each namespace, for which rule is empty, and of each rule that a
// request has matched. It leaves out namespaces without their own label, whose counts are not told apart.
//
// It reads the counters that Prometheus reads, so that decisions do nothing for it. same returns, for the
// number of matches of a rule, whether it is known already; the rule is then left out.
func (m *Metrics) EachCount(same func(namespace, rule string, matched int64) bool, f func(namespace, rule string, c Counts)) {
	m.mu.Lock()
	all := make([]*Namespace, 0, len(m.served))
	for _, n := range m.served {
		if n.label != rest {
			all = append(all, n)
		}
	}
	m.mu.Unlock()
	var buffer dto.Metric
	for _, n := range all {
		f(n.name, "", n.counts(&buffer))
		n.matched.each(func(name string, c prometheus.Counter) {
			matched := value(c, &buffer)
			if same(n.name, name, matched) {
				return
			}
			f(n.name, name, Counts{
				Matched: matched,
				Denied:  n.over.value(ruleMode{name, "enforce"}, &buffer),
				Shadow:  n.over.value(ruleMode{name, "shadow"}, &buffer),
				Near:    n.near.value(ruleMode{name, "enforce"}, &buffer) + n.near.value(ruleMode{name, "shadow"}, &buffer),
			})
		})
	}
}

// counts returns the counts of n for all rules.
func (n *Namespace) counts(buffer *dto.Metric) (c Counts) {
	n.decisions.each(func(d decision, counter prometheus.Counter) {
		if d.verb != store.Take {
			return
		}
		v := value(counter, buffer)
		c.Matched += v
		if d.outcome != rule.Allow {
			c.Denied += v
		}
	})
	c.Shadow = n.unmatched.value(store.Take, buffer)
	c.Near = value(n.degraded, buffer)
	return c
}

// each calls f with each counter of c. Decisions that need a new counter do not wait for f.
func (c *cache[K]) each(f func(K, prometheus.Counter)) {
	type entry struct {
		k       K
		counter prometheus.Counter
	}
	c.mu.RLock()
	all := make([]entry, 0, len(c.all))
	for k, counter := range c.all {
		all = append(all, entry{k, counter})
	}
	c.mu.RUnlock()
	for _, e := range all {
		f(e.k, e.counter)
	}
}

// value returns the value of the counter with the labels k, or 0 if there is none.
func (c *cache[K]) value(k K, buffer *dto.Metric) int64 {
	c.mu.RLock()
	counter, ok := c.all[k]
	c.mu.RUnlock()
	if !ok {
		return 0
	}
	return value(counter, buffer)
}

// value returns the value of a counter of whole numbers.
func value(c prometheus.Counter, buffer *dto.Metric) int64 {
	if err := c.Write(buffer); err != nil {
		return 0 // unreachable: a counter can always be read
	}
	return int64(buffer.GetCounter().GetValue())
}
