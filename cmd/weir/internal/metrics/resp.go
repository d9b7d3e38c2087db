package metrics

import "github.com/prometheus/client_golang/prometheus"

// RESPStats are numbers of the listener for Redis clients.
type RESPStats struct {
	Connections int
	Calls       map[string]int64 // by command
	Failed      map[string]int64 // calls that were answered with an error
	Protocol    int64            // connections that an error of the protocol ended
}

// WatchRESP exports what stats returns, each time the metrics are read.
func (m *Metrics) WatchRESP(stats func() RESPStats) {
	m.registry.MustRegister(&respCollector{
		stats:       stats,
		connections: prometheus.NewDesc("weir_resp_connections", "Open connections of Redis clients.", nil, nil),
		commands:    prometheus.NewDesc("weir_resp_commands_total", "Commands of Redis clients, by the command.", []string{"command"}, nil),
		failed:      prometheus.NewDesc("weir_resp_commands_failed_total", "Commands of Redis clients that were answered with an error.", []string{"command"}, nil),
		protocol:    prometheus.NewDesc("weir_resp_protocol_errors_total", "Connections of Redis clients that ended because they sent no valid command.", nil, nil),
	})
}

type respCollector struct {
	stats                                   func() RESPStats
	connections, commands, failed, protocol *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (c *respCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.connections
	ch <- c.commands
	ch <- c.failed
	ch <- c.protocol
}

// Collect implements [prometheus.Collector]. Commands that were never called have no
// series.
func (c *respCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	ch <- prometheus.MustNewConstMetric(c.connections, prometheus.GaugeValue, float64(s.Connections))
	ch <- prometheus.MustNewConstMetric(c.protocol, prometheus.CounterValue, float64(s.Protocol))
	for name, n := range s.Calls {
		if n > 0 {
			ch <- prometheus.MustNewConstMetric(c.commands, prometheus.CounterValue, float64(n), name)
			ch <- prometheus.MustNewConstMetric(c.failed, prometheus.CounterValue, float64(s.Failed[name]), name)
		}
	}
}
