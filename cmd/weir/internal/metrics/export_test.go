package metrics

import "github.com/prometheus/client_golang/prometheus"

// Watch adds a number, which is read with each answer of [Envoy.Handler].
func (e *Envoy) Watch(number func() float64) {
	e.own.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: envoyPrefix + "watched"}, number))
}
