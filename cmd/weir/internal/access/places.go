package access

import "sync"

// Places is a semaphore that callers without all rights cannot take from others: those of one share, which [Holder.Share]
// names, get at most half of its places, and those of all shares together three quarters. Make one with [NewPlaces]. It is
// safe for concurrent use.
type Places struct {
	most int

	mu    sync.Mutex
	taken int            // guarded by mu
	of    map[string]int // by share; "": callers with all rights; guarded by mu
}

// NewPlaces returns a semaphore with a number of places.
func NewPlaces(most int) *Places { return &Places{most: most, of: map[string]int{}} }

// Take takes a place for a caller of a share, and reports whether there was one. The caller calls Leave with the same share.
func (p *Places) Take(share string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most || share != "" && (p.of[share] >= p.most/2 || p.taken-p.of[""] >= p.most*3/4) {
		return false
	}
	p.taken++
	p.of[share]++
	return true
}

// Leave gives a place back.
func (p *Places) Leave(share string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[share]--; p.of[share] == 0 {
		delete(p.of, share)
	}
}
