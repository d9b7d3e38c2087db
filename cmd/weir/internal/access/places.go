package access

import "sync"

// Places is a semaphore that callers without all rights cannot take from others: those of one share, which [Holder.Share]
// names, get at most half of its places, and those of all shares together three quarters. Make one with [NewPlaces]. It is
// safe for concurrent use.
type Places struct {
	most int64

	mu    sync.Mutex
	taken int64            // guarded by mu
	of    map[string]int64 // by share; "": callers with all rights; guarded by mu
}

// NewPlaces returns a semaphore with a number of places.
func NewPlaces(most int64) *Places { return &Places{most: most, of: map[string]int64{}} }

// Take takes n places for a caller of a share, and reports whether there were as many. The caller calls Leave with the
// same share.
func (p *Places) Take(share string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.taken + n
	if taken > p.most || share != "" && (p.of[share]+n > p.most/2 || taken-p.of[""] > p.most*3/4) {
		return false
	}
	p.taken = taken
	p.of[share] += n
	return true
}

// Leave gives n places back.
func (p *Places) Leave(share string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
	if p.of[share] -= n; p.of[share] == 0 {
		delete(p.of, share)
	}
}

// Taken returns the number of places that are taken.
func (p *Places) Taken() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
