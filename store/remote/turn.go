package remote

import (
	"context"
	"slices"
	"sync"
)

// Turn waits until no other caller has a turn of any of names in turns: for the first name, then for the next one, and for
// each in the order in which callers came. So with a name of their own before one that all have, many callers of the first
// name keep those of another one waiting no longer than one of them does. The caller calls end when its turn is over, unless
// there is an error, which is that of ctx. turns keeps each name.
func Turn(ctx context.Context, turns *sync.Map, names ...string) (end func(), err error) {
	var taken []chan struct{}
	end = func() {
		for _, turn := range slices.Backward(taken) {
			<-turn
		}
	}
	for _, name := range names {
		turn, _ := turns.LoadOrStore(name, make(chan struct{}, 1))
		busy := turn.(chan struct{})
		select {
		case busy <- struct{}{}:
			taken = append(taken, busy)
		case <-ctx.Done():
			end()
			return nil, ctx.Err()
		}
	}
	return end, nil
}
