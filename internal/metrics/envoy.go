package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Envoy holds the metrics of envoyproxy/ratelimit, under the names that its
// Prometheus endpoint has.
type Envoy struct {
	total, within, near, over, shadow *counterOf
	ratio                             float64
}

// Hit is what became of one descriptor.
type Hit struct {
	// Keys are the domain, and the keys of the limit.
	Keys []string

	Hits, Quota, Used int64
	Shadow            bool // a limit in shadow mode was exceeded
}

// mostKeys is how many keys of a limit are labels; those of deeper ones are joined
// in the last.
const mostKeys = 4

// counterOf is a counter with the labels domain, key1, key2 and so on.
type counterOf struct{ *prometheus.CounterVec }

// Envoy adds these metrics to m. near is the part of a limit from which a call is
// near it.
func (m *Metrics) Envoy(near float64) *Envoy {
	labels := []string{"domain"}
	for i := range mostKeys {
		labels = append(labels, "key"+strconv.Itoa(i+1))
	}
	of := func(name, help string) *counterOf {
		return &counterOf{counters(m.registry, "ratelimit_service_rate_limit_"+name, help, labels...)}
	}
	return &Envoy{
		ratio:  near,
		total:  of("total_hits", "Hits under a limit of envoyproxy/ratelimit's files, by domain and keys."),
		within: of("within_limit", "Hits within the limit."),
		near:   of("near_limit", "Hits near the limit (NEAR_LIMIT_RATIO)."),
		over:   of("over_limit", "Hits over the limit."),
		shadow: of("shadow_mode", "Hits over a limit in shadow mode."),
	}
}

// add adds hits under the keys of h.
func (c *counterOf) add(h *Hit, hits int64) {
	if hits <= 0 {
		return
	}
	values := make([]string, 1+mostKeys)
	for i, key := range h.Keys {
		if i < len(values) {
			values[i] = key
		} else {
			values[mostKeys] += "." + key
		}
	}
	c.WithLabelValues(values...).Add(float64(hits))
}

// Count counts h: of its hits those that were over the limit, those that were near
// it, and those that were within it.
func (e *Envoy) Count(h *Hit) {
	e.total.add(h, h.Hits)
	over := min(max(h.Used-h.Quota, 0), h.Hits)
	e.over.add(h, over)
	if h.Shadow {
		e.shadow.add(h, over)
	}
	from := int64(e.ratio * float64(h.Quota))
	e.near.add(h, min(max(min(h.Used, h.Quota)-from, 0), h.Hits-over))
	e.within.add(h, h.Hits-over)
}
