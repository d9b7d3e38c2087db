package metrics

import "github.com/prometheus/client_golang/prometheus"

// StoreStats are what a store in memory tells about itself.
type StoreStats struct {
	// Keys are the keys kept for each rule.
	Keys map[string]int64

	// Full is how often a new key found no room, since the start.
	Full int64
}

// Watch reports what stats says each time the metrics are read.
func (m *Metrics) Watch(stats func() StoreStats) {
	m.registry.MustRegister(&storeCollector{
		stats: stats,
		keys:  prometheus.NewDesc("weir_store_keys", "Keys in memory, by rule.", []string{"rule"}, nil),
		full: prometheus.NewDesc("weir_store_full_total",
			"New keys that found no room because their rule had max_keys of them.", nil, nil),
	})
}

type storeCollector struct {
	stats      func() StoreStats
	keys, full *prometheus.Desc
}

func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.keys
	ch <- c.full
}

func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	for rule, n := range s.Keys {
		ch <- prometheus.MustNewConstMetric(c.keys, prometheus.GaugeValue, float64(n), rule)
	}
	ch <- prometheus.MustNewConstMetric(c.full, prometheus.CounterValue, float64(s.Full))
}
