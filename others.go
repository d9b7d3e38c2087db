package weir

import (
	"sync"

	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
)

// others holds rule sets that came with requests, ready for use. Its zero value is
// ready. It is safe for concurrent use.
type others struct {
	mu    sync.RWMutex
	known map[*rule.Set]*plan.Rules // guarded by mu
}

// mostOthers is how many sets are remembered. When there are more, all are
// prepared again.
const mostOthers = 4096

// prepared returns set, ready for use.
func (e *Engine) prepared(set *rule.Set) *plan.Rules {
	o := &e.others
	o.mu.RLock()
	rules := o.known[set]
	o.mu.RUnlock()
	if rules != nil {
		return rules
	}
	rules = plan.NewRules(set, e.namespace, e.rules.Load())
	if rules.Holds() {
		e.seals.ready()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.known[set]; known != nil {
		return known
	}
	if o.known == nil || len(o.known) >= mostOthers {
		o.known = map[*rule.Set]*plan.Rules{}
		e.driver.Renew() // it knows the limits of the sets
	}
	o.known[set] = rules
	return rules
}

// drop forgets all sets.
func (o *others) drop() {
	o.mu.Lock()
	o.known = nil
	o.mu.Unlock()
}
