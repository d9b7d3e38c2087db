package report

import (
	"reflect"
	"sync"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
)

// Shared gives the engines that count in one local memory the same Reporter. So each of them finds what is pending for a key,
// whichever has counted it. The zero value is ready. It is safe for concurrent use.
type Shared struct {
	mu       sync.Mutex
	reporter *Reporter // nil: no engine has it; guarded by mu
	engines  int       // that have it; guarded by mu
}

// Open returns the Reporter to an engine of a namespace, and a function to call when the engine is closed; the last engine
// closes the Reporter. If the Reporter is one to another store than to, ok is false.
func (s *Shared) Open(to store.Store, side hook.SideStore, namespace string) (r *Reporter, end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.reporter == nil:
		s.reporter = New(to, side)
	case !reflect.ValueOf(to).Comparable() || s.reporter.store != to:
		return nil, nil, false
	}
	r = s.reporter
	s.engines++
	r.enlist(namespace, 1)
	return r, sync.OnceFunc(func() {
		r.enlist(namespace, -1)
		if s.isLast() {
			r.Close()
		}
	}), true
}

// isLast counts one engine less, and reports whether it was the last one.
func (s *Shared) isLast() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engines--; s.engines > 0 {
		return false
	}
	s.reporter = nil
	return true
}
