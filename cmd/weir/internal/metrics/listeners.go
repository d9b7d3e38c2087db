package metrics

import "time"

// AccessRefused counts a call that a listener refused.
func (m *Metrics) AccessRefused(listener, reason string) {
	m.refused.WithLabelValues(listener, reason).Inc()
}

// Shed counts a request or a connection that a listener refused because of a resource limit.
func (m *Metrics) Shed(listener, limit string) { m.shed.WithLabelValues(listener, limit).Inc() }

// AccessReloaded records whether the tokens or the certificate could be loaded.
func (m *Metrics) AccessReloaded(what string, ok bool) {
	m.accessLoaded.WithLabelValues(what).Set(one(ok))
}

// gauge exports the number that value returns.
func gauge[N int | int64](m *Metrics, name, help string, value func() N) {
	watch(m, value, number(name, help, func(n N) float64 { return float64(n) }))
}

// WatchCertificate exports when the certificate of the listeners expires.
func (m *Metrics) WatchCertificate(until func() time.Time) {
	m.AccessReloaded("certificate", true)
	gauge(m, "weir_tls_certificate_expiry_timestamp_seconds", "Time at which the certificate of the listeners expires, in Unix time.",
		func() int64 { return until().Unix() })
}

// WatchTokens exports the number of tokens in force.
func (m *Metrics) WatchTokens(number func() int) {
	m.AccessReloaded("tokens", true)
	gauge(m, "weir_access_tokens", "Number of tokens and certificates in force.", number)
}

// WatchInstances exports what number returns, each time the metrics are read.
func (m *Metrics) WatchInstances(number func() int) {
	gauge(m, "weir_store_instances", "Instances that share the store, as this one counts them.", number)
}

// WatchNamespaces exports what number returns, each time the metrics are read.
func (m *Metrics) WatchNamespaces(number func() int) {
	gauge(m, "weir_namespaces", "Number of namespaces in service.", number)
}

// RESPStats are numbers of the listener for Redis clients.
type RESPStats struct {
	Connections int
	Calls       map[string]int64 // by command
	Failed      map[string]int64 // calls that were answered with an error
	Protocol    int64            // connections that ended because of a protocol error
}

// WatchRESP exports what stats returns, each time the metrics are read. Commands that were
// never called have no series.
func (m *Metrics) WatchRESP(stats func() RESPStats) {
	byCommand := func(name, help string, calls func(s RESPStats) map[string]int64) row[RESPStats] {
		return row[RESPStats]{name, help, []string{"command"}, func(s RESPStats, send send) {
			for command, n := range calls(s) {
				if s.Calls[command] > 0 {
					send(float64(n), command)
				}
			}
		}}
	}
	watch(m, stats,
		number("weir_resp_connections", "Open connections of Redis clients.", func(s RESPStats) float64 { return float64(s.Connections) }),
		byCommand("weir_resp_commands_total", "Commands of Redis clients, by the command.", func(s RESPStats) map[string]int64 { return s.Calls }),
		byCommand("weir_resp_commands_failed_total", "Commands of Redis clients that were answered with an error.", func(s RESPStats) map[string]int64 { return s.Failed }),
		number("weir_resp_protocol_errors_total", "Connections of Redis clients that ended because of a protocol error.", func(s RESPStats) float64 { return float64(s.Protocol) }),
	)
}
