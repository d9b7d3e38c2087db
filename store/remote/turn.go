package remote

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/store"
)

// maxWaiting is the most callers that wait for one turn. More would keep places that others need, for little work.
const maxWaiting = 64

// turn is a semaphore for one caller.
type turn struct {
	busy    chan struct{}
	waiting atomic.Int64 // callers
}

// Turn waits until a caller has the turn of each of names in turns, one after the other. Each turn has one caller at
// a time, the first to come first. Names such as that of a namespace and then "all" keep those of one namespace
// waiting for each other, and for one caller of each other namespace. The caller calls end when it is done, unless
// there is an error: that of ctx, or an outage, [Busy], if many wait already. turns keeps each name.
func Turn(ctx context.Context, turns *sync.Map, names ...string) (end func(), err error) {
	var taken []*turn
	end = func() {
		for _, t := range slices.Backward(taken) {
			<-t.busy
		}
	}
	for _, name := range names {
		known, _ := turns.LoadOrStore(name, &turn{busy: make(chan struct{}, 1)})
		t := known.(*turn)
		if err = t.wait(ctx); err != nil {
			end()
			return nil, err
		}
		taken = append(taken, t)
	}
	return end, nil
}

func (t *turn) wait(ctx context.Context) error {
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > maxWaiting {
		return &store.OutageError{Reason: Busy, Err: ErrBusy, Uncounted: true}
	}
	select {
	case t.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
