package metrics

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/store"
)

// cache finds counters by their labels. A Prometheus vector hashes each label and
// takes a lock for every lookup; a cache does so only for labels that are new to it.
// It is safe for concurrent use.
type cache[K comparable] struct {
	make func(K) prometheus.Counter

	known atomic.Pointer[map[K]prometheus.Counter] // is never changed, only replaced

	mu     sync.Mutex
	all    map[K]prometheus.Counter // guarded by mu; those in known, and newer ones
	missed int                      // guarded by mu; lookups that known did not answer
}

func newCache[K comparable](make func(K) prometheus.Counter) *cache[K] {
	c := &cache[K]{make: make, all: map[K]prometheus.Counter{}}
	c.known.Store(new(map[K]prometheus.Counter))
	return c
}

// get returns the counter with the labels k. It makes the counter if there is none.
func (c *cache[K]) get(k K) prometheus.Counter {
	if counter, ok := (*c.known.Load())[k]; ok {
		return counter
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counter, ok := c.all[k]
	if !ok {
		counter = c.make(k)
		c.all[k] = counter
	}
	// A copy for each new counter would cost the square of their number. So there
	// is one when as many lookups have missed as it has counters.
	if c.missed++; c.missed >= len(c.all) {
		known := maps.Clone(c.all)
		c.known.Store(&known)
		c.missed = 0
	}
	return counter
}

// decision has the labels of a decision, and ruleMode those of a rule in a mode.
type (
	decision struct {
		rule, outcome string
		verb          store.Verb
	}
	ruleMode struct{ rule, mode string }
)
