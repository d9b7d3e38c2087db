package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// DataStats is the state of a data directory.
type DataStats struct {
	Loading  bool
	Loaded   int64
	LoadTime time.Duration

	Lag         time.Duration // since the last flush that succeeded
	Bytes, Live int64         // of all files; what the keys alone need

	Flushes, Failures         int64
	FlushTime                 time.Duration
	WrittenBytes, WrittenKeys int64
	Rounds                    int64
	Damaged                   int64
	Failing                   bool
}

// WatchData exports what stats returns, each time the metrics are read.
func (m *Metrics) WatchData(stats func() DataStats) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("weir_data_"+name, help, labels, nil)
	}
	m.registry.MustRegister(&dataCollector{
		stats:    stats,
		loading:  desc("loading", "Whether counters are still being loaded from the data directory."),
		loaded:   desc("loaded_keys", "Keys that were loaded at the start."),
		loadTime: desc("load_seconds", "How long loading took, or has taken."),
		lag:      desc("lag_seconds", "Time since the begin of the last flush that succeeded; a kill loses what was counted since."),
		bytes:    desc("bytes", "Size of the files in the data directory."),
		live:     desc("live_bytes", "What the keys alone need in the files, about; 0 until that is known."),
		flushes:  desc("flushes_total", "Flushes to the data directory, by result.", "result"),
		seconds:  desc("flush_seconds_total", "Time that flushes took."),
		failing:  desc("failing", "Whether the last flush failed. Counting goes on in memory."),
		written:  desc("written_bytes_total", "Bytes that were written to the data directory."),
		keys:     desc("written_keys_total", "Keys that were written to the data directory."),
		rounds:   desc("rounds_total", "Rounds, each of which wrote all keys to a new file."),
		damaged:  desc("damaged", "Batches and parts of files that could not be read at the start."),
	})
}

type dataCollector struct {
	stats                                            func() DataStats
	loading, loaded, loadTime, lag, bytes, live      *prometheus.Desc
	flushes, seconds, failing, written, keys, rounds *prometheus.Desc
	damaged                                          *prometheus.Desc
}

func (c *dataCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.loading, c.loaded, c.loadTime, c.lag, c.bytes, c.live, c.flushes, c.seconds, c.failing, c.written, c.keys, c.rounds, c.damaged,
	} {
		ch <- d
	}
}

func (c *dataCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	is := map[bool]float64{true: 1}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	send(c.loading, prometheus.GaugeValue, is[s.Loading])
	send(c.loaded, prometheus.GaugeValue, float64(s.Loaded))
	send(c.loadTime, prometheus.GaugeValue, s.LoadTime.Seconds())
	send(c.lag, prometheus.GaugeValue, s.Lag.Seconds())
	send(c.bytes, prometheus.GaugeValue, float64(s.Bytes))
	send(c.live, prometheus.GaugeValue, float64(s.Live))
	send(c.flushes, prometheus.CounterValue, float64(s.Flushes), "ok")
	send(c.flushes, prometheus.CounterValue, float64(s.Failures), "failed")
	send(c.seconds, prometheus.CounterValue, s.FlushTime.Seconds())
	send(c.failing, prometheus.GaugeValue, is[s.Failing])
	send(c.written, prometheus.CounterValue, float64(s.WrittenBytes))
	send(c.keys, prometheus.CounterValue, float64(s.WrittenKeys))
	send(c.rounds, prometheus.CounterValue, float64(s.Rounds))
	send(c.damaged, prometheus.GaugeValue, float64(s.Damaged))
}
