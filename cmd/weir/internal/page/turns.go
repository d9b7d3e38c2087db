package page

import (
	"context"
	"sync"

	"github.com/weirhq/weir/store/remote"
)

// turns lets callers wait for each other: one of each share, which [access.Holder.Share] names, is busy at a time, and
// [mostBusy] of all. So a caller waits at most for one of each other share, and for those of its own. It is safe for
// concurrent use.
type turns struct {
	of  sync.Map      // by share; see [remote.Turn]
	all chan struct{} // a semaphore
}

// mostBusy is the maximum number of callers that are busy at a time. Checking a text can take 200 MB.
const mostBusy = 2

func newTurns() *turns { return &turns{all: make(chan struct{}, mostBusy)} }

// wait waits until it is the turn of a caller of a share. The caller calls end, unless there is an error: that of ctx,
// or an outage if many wait already.
func (t *turns) wait(ctx context.Context, share string) (end func(), err error) {
	next, err := remote.Turn(ctx, &t.of, share)
	if err != nil {
		return nil, err
	}
	select {
	case t.all <- struct{}{}:
		return func() { <-t.all; next() }, nil
	case <-ctx.Done():
		next()
		return nil, ctx.Err()
	}
}
