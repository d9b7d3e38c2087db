package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// row is a metric that is computed from a state S when the metrics are read. If its name ends in
// _total it is a counter, and otherwise a gauge.
type row[S any] struct {
	name, help string
	labels     []string
	values     func(s S, send send)
}

// send sends a value, with one label value for each label of its row.
type send func(value float64, labels ...string)

// number returns a row without labels.
func number[S any](name, help string, value func(s S) float64) row[S] {
	return row[S]{name, help, nil, func(s S, send send) { send(value(s)) }}
}

// watch exports the values of rows, computed from the state that read returns each time the metrics
// are read.
func watch[S any](m *Metrics, read func() S, rows ...row[S]) {
	c := &watched[S]{read: read, rows: rows}
	for _, r := range rows {
		c.descs = append(c.descs, prometheus.NewDesc(r.name, r.help, r.labels, nil))
	}
	m.registry.MustRegister(c)
}

// watched implements [prometheus.Collector].
type watched[S any] struct {
	read  func() S
	rows  []row[S]
	descs []*prometheus.Desc // by row
}

func (c *watched[S]) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

func (c *watched[S]) Collect(ch chan<- prometheus.Metric) {
	s := c.read()
	for i, r := range c.rows {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(r.name, "_total") {
			kind = prometheus.CounterValue
		}
		r.values(s, func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(c.descs[i], kind, value, labels...)
		})
	}
}
