package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
)

// StoreStats is the state of a store in memory.
type StoreStats struct {
	// Rules has the numbers of each rule.
	Rules []RuleStats

	// Full is the number of new keys that found no room since the start.
	Full int64

	// Bytes is the memory of all keys, and MaxBytes its bound, or 0.
	Bytes, MaxBytes int64
}

// RuleStats is what one rule keeps in memory.
type RuleStats struct {
	Namespace, Rule string

	// Keys is the number of keys. Holds is the number of holds that are alive, and
	// Banned the number of banned keys; each is negative if the rule cannot have
	// any, or if it does not count in memory.
	Keys, Holds, Banned int64
}

// Watch exports what stats returns, each time the metrics are read.
func (m *Metrics) Watch(stats func() StoreStats) {
	m.registry.MustRegister(&storeCollector{
		stats: stats, label: m.label,
		keys: prometheus.NewDesc("weir_store_keys", "Keys in memory, by rule.", []string{"namespace", "rule"}, nil),
		holds: prometheus.NewDesc("weir_store_holds",
			"Holds that are alive in memory, by rule.", []string{"namespace", "rule"}, nil),
		banned: prometheus.NewDesc("weir_store_banned_keys",
			"Keys in memory that are banned, by rule.", []string{"namespace", "rule"}, nil),
		full: prometheus.NewDesc("weir_store_full_total",
			"Calls that found no room: their rule had max_keys keys, or all counters took the memory that they may take.", nil, nil),
		bytes: prometheus.NewDesc("weir_store_memory_bytes", "Memory of all counters in memory.", nil, nil),
		most:  prometheus.NewDesc("weir_store_memory_limit_bytes", "Memory that all counters in memory may take; 0 without a bound.", nil, nil),
	})
}

// ofRule is the labels of a rule.
type ofRule struct{ namespace, rule string }

// label returns the labels of a rule.
func (m *Metrics) label(namespace, rule string) ofRule {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.served[namespace]; n != nil && n.label == rest {
		return ofRule{rest, rest}
	}
	return ofRule{namespace, rule}
}

type storeCollector struct {
	stats                                  func() StoreStats
	label                                  func(namespace, rule string) ofRule
	keys, holds, banned, full, bytes, most *prometheus.Desc
}

func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.keys
	ch <- c.holds
	ch <- c.banned
	ch <- c.full
	ch <- c.bytes
	ch <- c.most
}

func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	gauges := func(desc *prometheus.Desc, number func(*RuleStats) int64) {
		sums := map[ofRule]int64{}
		for i := range s.Rules {
			r := &s.Rules[i]
			if n := number(r); n >= 0 {
				sums[c.label(r.Namespace, r.Rule)] += n
			}
		}
		for of, n := range sums {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), of.namespace, of.rule)
		}
	}
	gauges(c.keys, func(r *RuleStats) int64 { return r.Keys })
	gauges(c.holds, func(r *RuleStats) int64 { return r.Holds })
	gauges(c.banned, func(r *RuleStats) int64 { return r.Banned })
	ch <- prometheus.MustNewConstMetric(c.full, prometheus.CounterValue, float64(s.Full))
	ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(s.Bytes))
	ch <- prometheus.MustNewConstMetric(c.most, prometheus.GaugeValue, float64(s.MaxBytes))
}

// WatchReports exports what reports returns, each time the metrics are read.
func (m *Metrics) WatchReports(reports func() weir.Reports) {
	m.registry.MustRegister(&reportCollector{
		reports: reports,
		pending: prometheus.NewDesc("weir_store_report_pending",
			"Keys with hits that were counted in an outage and are not recorded in the store yet.", nil, nil),
		hits: prometheus.NewDesc("weir_store_report_hits_total",
			"Hits that were counted in an outage, by what became of their report to the store.", []string{"result"}, nil),
	})
}

// WatchInstances exports what number returns, each time the metrics are read.
func (m *Metrics) WatchInstances(number func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_store_instances",
		Help: "Instances that share the store, as this one counts them.",
	}, func() float64 { return float64(number()) }))
}

// WatchNamespaces exports what number returns, each time the metrics are read.
func (m *Metrics) WatchNamespaces(number func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_namespaces",
		Help: "Number of namespaces in service.",
	}, func() float64 { return float64(number()) }))
}

type reportCollector struct {
	reports       func() weir.Reports
	pending, hits *prometheus.Desc
}

func (c *reportCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.pending
	ch <- c.hits
}

func (c *reportCollector) Collect(ch chan<- prometheus.Metric) {
	r := c.reports()
	ch <- prometheus.MustNewConstMetric(c.pending, prometheus.GaugeValue, float64(r.Pending))
	hits := func(result string, n int64) {
		ch <- prometheus.MustNewConstMetric(c.hits, prometheus.CounterValue, float64(n), result)
	}
	hits("recorded", r.Recorded)
	hits("lost", r.Lost)
	hits("dropped", r.Dropped)
}

// NodeStats is the state of one node of a shared store.
type NodeStats struct {
	Addr          string
	Unavailable   bool  // the node gets no calls, because it does not answer
	Interruptions int64 // how often that began
	InFlight      int64

	// Outages has all reasons, so that the first outage is an increase.
	Outages map[store.Reason]int64
}

// WatchNodes exports what nodes returns, each time the metrics are read.
func (m *Metrics) WatchNodes(nodes func() []NodeStats) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"node"}, labels...), nil)
	}
	m.registry.MustRegister(&nodeCollector{
		nodes:         nodes,
		outages:       desc("weir_store_outages_total", "Calls that a node of the store did not answer, or that were not sent to it, by reason.", "reason"),
		unavailable:   desc("weir_store_cut_off", "Whether a node of the store is cut off: it gets no calls, because it did not answer."),
		interruptions: desc("weir_store_cut_offs_total", "How often a node of the store was cut off."),
		inFlight:      desc("weir_store_in_flight", "Calls that wait for an answer of a node of the store."),
	})
}

type nodeCollector struct {
	nodes                                         func() []NodeStats
	outages, unavailable, interruptions, inFlight *prometheus.Desc
}

func (c *nodeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.outages
	ch <- c.unavailable
	ch <- c.interruptions
	ch <- c.inFlight
}

func (c *nodeCollector) Collect(ch chan<- prometheus.Metric) {
	for _, n := range c.nodes() {
		unavailable := 0.0
		if n.Unavailable {
			unavailable = 1
		}
		for reason, count := range n.Outages {
			ch <- prometheus.MustNewConstMetric(c.outages, prometheus.CounterValue, float64(count), n.Addr, string(reason))
		}
		ch <- prometheus.MustNewConstMetric(c.unavailable, prometheus.GaugeValue, unavailable, n.Addr)
		ch <- prometheus.MustNewConstMetric(c.interruptions, prometheus.CounterValue, float64(n.Interruptions), n.Addr)
		ch <- prometheus.MustNewConstMetric(c.inFlight, prometheus.GaugeValue, float64(n.InFlight), n.Addr)
	}
}
