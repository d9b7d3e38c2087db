package remote

import (
	"context"
	"slices"
	"sync"
)

// Turn waits until a caller has the turn of each of names in turns, one after the other. Each turn has one caller at
// a time, the first to come first. Names such as that of a namespace and then "all" keep those of one namespace
// waiting for each other, and for one caller of each other namespace. The caller calls end when it is done, unless
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
