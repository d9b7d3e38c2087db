package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
)

// StoreStats is the state of a store in memory.
type StoreStats struct {
	// Keys holds the number of keys of each rule.
	Keys map[string]int64

	// Holds holds the number of holds that are alive, of each rule whose takes
	// hold, and Banned the number of banned keys, of each rule that bans. Both
	// are nil if the store does not count in memory.
	Holds, Banned map[string]int64

	// Full is the number of new keys that found no room since the start.
	Full int64

	// Bytes is the memory of all keys, and MaxBytes its bound, or 0.
	Bytes, MaxBytes int64
}

// Watch exports what stats returns, each time the metrics are read.
func (m *Metrics) Watch(stats func() StoreStats) {
	m.registry.MustRegister(&storeCollector{
		stats: stats,
		keys:  prometheus.NewDesc("weir_store_keys", "Keys in memory, by rule.", []string{"rule"}, nil),
		holds: prometheus.NewDesc("weir_store_holds",
			"Holds that are alive in memory, by rule.", []string{"rule"}, nil),
		banned: prometheus.NewDesc("weir_store_banned_keys",
			"Keys in memory that are banned, by rule.", []string{"rule"}, nil),
		full: prometheus.NewDesc("weir_store_full_total",
			"Calls that found no room: their rule had max_keys keys, or all counters took the memory that they may take.", nil, nil),
		bytes: prometheus.NewDesc("weir_store_memory_bytes", "Memory of all counters in memory.", nil, nil),
		most:  prometheus.NewDesc("weir_store_memory_limit_bytes", "Memory that all counters in memory may take; 0 without a bound.", nil, nil),
	})
}

type storeCollector struct {
	stats                                  func() StoreStats
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
	gauges := func(desc *prometheus.Desc, numbers map[string]int64) {
		for rule, n := range numbers {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), rule)
		}
	}
	gauges(c.keys, s.Keys)
	gauges(c.holds, s.Holds)
	gauges(c.banned, s.Banned)
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
	Addr     string
	CutOff   bool  // the node gets no calls, because it does not answer
	CutOffs  int64 // how often that began
	InFlight int64
	Outages  map[store.Reason]int64
}

// WatchNodes exports what nodes returns, each time the metrics are read.
func (m *Metrics) WatchNodes(nodes func() []NodeStats) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"node"}, labels...), nil)
	}
	m.registry.MustRegister(&nodeCollector{
		nodes:    nodes,
		outages:  desc("weir_store_outages_total", "Calls that a node of the store did not answer, or that were not sent to it, by reason.", "reason"),
		cutOff:   desc("weir_store_cut_off", "Whether a node of the store is cut off: it gets no calls, because it did not answer."),
		cutOffs:  desc("weir_store_cut_offs_total", "How often a node of the store was cut off."),
		inFlight: desc("weir_store_in_flight", "Calls that wait for an answer of a node of the store."),
	})
}

type nodeCollector struct {
	nodes                              func() []NodeStats
	outages, cutOff, cutOffs, inFlight *prometheus.Desc
}

func (c *nodeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.outages
	ch <- c.cutOff
	ch <- c.cutOffs
	ch <- c.inFlight
}

func (c *nodeCollector) Collect(ch chan<- prometheus.Metric) {
	for _, n := range c.nodes() {
		cutOff := 0.0
		if n.CutOff {
			cutOff = 1
		}
		for _, reason := range store.Reasons() { // all of them, so that the first outage is an increase
			ch <- prometheus.MustNewConstMetric(c.outages, prometheus.CounterValue, float64(n.Outages[reason]), n.Addr, string(reason))
		}
		ch <- prometheus.MustNewConstMetric(c.cutOff, prometheus.GaugeValue, cutOff, n.Addr)
		ch <- prometheus.MustNewConstMetric(c.cutOffs, prometheus.CounterValue, float64(n.CutOffs), n.Addr)
		ch <- prometheus.MustNewConstMetric(c.inFlight, prometheus.GaugeValue, float64(n.InFlight), n.Addr)
	}
}
