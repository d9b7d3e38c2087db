package access

import "sync"

// Places is a semaphore that callers who are bound to one namespace cannot take from others: those of one namespace get at
// most half of its places, and those of all namespaces together three quarters. Make one with [NewPlaces]. It is safe for
// concurrent use.
type Places struct {
	most int

	mu    sync.Mutex
	taken int            // guarded by mu
	of    map[string]int // by the namespace that callers are bound to; "": none; guarded by mu
}

// NewPlaces returns a semaphore with a number of places.
func NewPlaces(most int) *Places { return &Places{most: most, of: map[string]int{}} }

// Take takes a place for a caller who is bound to a namespace, or to none, and reports whether there was one. The caller calls
// Leave with the same namespace.
func (p *Places) Take(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most || namespace != "" && (p.of[namespace] >= p.most/2 || p.taken-p.of[""] >= p.most*3/4) {
		return false
	}
	p.taken++
	p.of[namespace]++
	return true
}

// Leave gives a place back.
func (p *Places) Leave(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[namespace]--; p.of[namespace] == 0 {
		delete(p.of, namespace)
	}
}
