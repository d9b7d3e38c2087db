package page

import (
	"context"
	"sync"
)

// turns lets callers wait for each other: one of each share, which [access.Holder.Share] names, is busy at a time, and
// [mostBusy] of all. So a caller waits at most for one of each other share, and for those of its own. It is safe for
// concurrent use.
type turns struct {
	all chan struct{} // a semaphore

	mu sync.Mutex
	of map[string]*turn // by share: those who wait or are busy; guarded by mu
}

// turn is a semaphore for the callers of one share.
type turn struct {
	busy  chan struct{}
	users int // guarded by the mutex of turns
}

// mostBusy is the maximum number of callers that are busy at a time. Checking a text can take 200 MB.
const mostBusy = 2

func newTurns() *turns {
	return &turns{all: make(chan struct{}, mostBusy), of: map[string]*turn{}}
}

// wait waits until it is the turn of a caller of a share. The caller calls end, unless there is an error, which is that
// of ctx.
func (t *turns) wait(ctx context.Context, share string) (end func(), err error) {
	t.mu.Lock()
	own := t.of[share]
	if own == nil {
		own = &turn{busy: make(chan struct{}, 1)}
		t.of[share] = own
	}
	own.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.of, share)
		}
	}
	select {
	case own.busy <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	select {
	case t.all <- struct{}{}:
		return func() { <-t.all; <-own.busy; leave() }, nil
	case <-ctx.Done():
		<-own.busy
		leave()
		return nil, ctx.Err()
	}
}
