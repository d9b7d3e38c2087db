package remote

import (
	"context"
	"sync"
)

// Turn waits until no other caller has a turn of the same name in turns, the first to come first, so that many callers of
// one name keep those of another one waiting no longer than one of them does. The caller calls end when its turn is over,
// unless there is an error, which is that of ctx. turns keeps each name.
func Turn(ctx context.Context, turns *sync.Map, name string) (end func(), err error) {
	turn, _ := turns.LoadOrStore(name, make(chan struct{}, 1))
	busy := turn.(chan struct{})
	select {
	case busy <- struct{}{}:
		return func() { <-busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
