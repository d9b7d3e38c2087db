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

// get returns set, ready for use, or nil if it is not known.
func (o *others) get(set *rule.Set) *plan.Rules {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.known[set]
}

// add adds set and returns it, ready for use. It reports whether there were too
// many sets, so that all others were forgotten.
func (o *others) add(set *rule.Set, rules *plan.Rules) (_ *plan.Rules, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.known[set]; known != nil {
		return known, false
	}
	full = len(o.known) >= mostOthers
	if o.known == nil || full {
		o.known = map[*rule.Set]*plan.Rules{}
	}
	o.known[set] = rules
	return rules, full
}

// drop forgets all sets.
func (o *others) drop() {
	o.mu.Lock()
	o.known = nil
	o.mu.Unlock()
}
