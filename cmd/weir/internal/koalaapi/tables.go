package koalaapi

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/rule"
)

// tables has the table of the rules that decided last, for each namespace. Its
// zero value is empty. It is safe for concurrent use.
type tables struct {
	made   atomic.Pointer[map[*namespace.Namespace]*table] // is never changed, only replaced
	making sync.Mutex                                      // held while a table is being made
}

// of returns the table of set, rules of space.
func (ts *tables) of(space *namespace.Namespace, set *rule.Set) *table {
	if t := ts.find(space); t != nil && t.set == set {
		return t
	}
	ts.making.Lock()
	defer ts.making.Unlock()
	if t := ts.find(space); t != nil && t.set == set {
		return t
	}
	next := map[*namespace.Namespace]*table{}
	if made := ts.made.Load(); made != nil {
		maps.Copy(next, *made)
	}
	maps.DeleteFunc(next, func(n *namespace.Namespace, _ *table) bool { return n.Gone() })
	next[space] = newTable(set)
	ts.made.Store(&next)
	return next[space]
}

// find returns the last table of space, or nil.
func (ts *tables) find(space *namespace.Namespace) *table {
	if made := ts.made.Load(); made != nil {
		return (*made)[space]
	}
	return nil
}
