package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// access holds the metrics about callers and certificates.
type access struct {
	refused *prometheus.CounterVec
	loaded  *prometheus.GaugeVec
	shed    *prometheus.CounterVec
}

func newAccess(r prometheus.Registerer) access {
	a := access{
		refused: counters(r, "weir_access_refused_total",
			"Calls that were refused for lack of a right, by listener and reason.", "listener", "reason"),
		shed: counters(r, "weir_shed_total",
			"Requests and connections that were refused because of a bound, by listener and bound.", "listener", "bound"),
		loaded: gauges(r, "weir_access_reload_success",
			"Whether the last attempt to load the tokens or the certificate succeeded.", "what"),
	}
	return a
}

// AccessRefused counts a call that a listener refused.
func (m *Metrics) AccessRefused(listener, reason string) {
	m.access.refused.WithLabelValues(listener, reason).Inc()
}

// Shed counts a request or a connection that a listener refused because of a
// bound.
func (m *Metrics) Shed(listener, bound string) {
	m.access.shed.WithLabelValues(listener, bound).Inc()
}

// AccessReloaded records whether the tokens or the certificate could be loaded.
func (m *Metrics) AccessReloaded(what string, ok bool) {
	m.access.loaded.WithLabelValues(what).Set(one(ok))
}

// WatchCertificate exports when the certificate of the listeners expires.
func (m *Metrics) WatchCertificate(until func() time.Time) {
	m.AccessReloaded("certificate", true)
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_tls_certificate_expiry_timestamp_seconds",
		Help: "Time at which the certificate of the listeners expires, in Unix time.",
	}, func() float64 { return float64(until().Unix()) }))
}

// WatchTokens exports the number of tokens in force.
func (m *Metrics) WatchTokens(number func() int) {
	m.AccessReloaded("tokens", true)
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_access_tokens",
		Help: "Number of tokens and certificates in force.",
	}, func() float64 { return float64(number()) }))
}
