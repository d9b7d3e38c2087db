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

	known atomic.Pointer[knownCounters[K]] // is never changed, only replaced

	mu     sync.Mutex
	all    map[K]prometheus.Counter // guarded by mu; those in known, and newer ones
	missed int                      // guarded by mu; lookups that known did not answer
}

// knownCounters are counters by their labels. Few of them are compared one by one, which
// takes a third of the time of hashing labels.
type knownCounters[K comparable] struct {
	few []labelled[K] // all, if they are few
	all map[K]prometheus.Counter
}

type labelled[K comparable] struct {
	labels  K
	counter prometheus.Counter
}

// fewCounters is the most counters that are compared one by one.
const fewCounters = 4

func know[K comparable](all map[K]prometheus.Counter) *knownCounters[K] {
	k := &knownCounters[K]{all: all}
	if len(all) <= fewCounters {
		for labels, counter := range all {
			k.few = append(k.few, labelled[K]{labels, counter})
		}
	}
	return k
}

func newCache[K comparable](make func(K) prometheus.Counter) *cache[K] {
	c := &cache[K]{make: make, all: map[K]prometheus.Counter{}}
	c.known.Store(know[K](nil))
	return c
}

// get returns the counter with the labels k. It makes the counter if there is none.
func (c *cache[K]) get(k K) prometheus.Counter {
	known := c.known.Load()
	for i := range known.few {
		if l := &known.few[i]; l.labels == k {
			return l.counter
		}
	}
	if len(known.all) > fewCounters {
		if counter, ok := known.all[k]; ok {
			return counter
		}
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
		c.known.Store(know(maps.Clone(c.all)))
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
