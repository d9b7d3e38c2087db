package conn

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
)

const (
	// maxBatch is the most calls of one flush. A server does nothing else while it
	// decides them: 64 in one run of a script take it a tenth to a third of a
	// millisecond, and half a millisecond when each has its own slot.
	maxBatch = 64

	// minShare is how many waiting calls leave together, even when that is more than
	// half of them: smaller batches cost more for each call.
	minShare = 8

	// maxFlushes is how many flushes may be in flight, unless the server is far away.
	// With two of them the server decides one while this process reads and writes the
	// other.
	maxFlushes = 2

	// flushEvery is about how long a call waits for others at most. Where round trips
	// are long, more flushes are in flight, so that one returns in every such time.
	flushEvery = 500 * time.Microsecond
)

// batcher sends the calls of callers who wait for one node at the same time together:
// each batch, or flush, has up to maxBatch calls, and those with the same program and slot share
// one run of it. It is safe for concurrent use.
//
// A caller that finds fewer flushes in flight than there may be sends its call at once,
// by itself. The calls of others are queued and leave with the flush that follows one
// that has returned. So a caller waits for others only while flushes are in flight, and
// batches grow with the load.
//
// Each caller has its own deadline, and stops waiting then, whatever happens to its
// flush: the deadline in the call keeps it from counting later. A flush itself waits for
// its replies until the connection ends.
//
// A call that was sent by itself counts as a flush in flight, here and in limit and finish.
//
// Invariant: while calls are queued, a flush is in flight.
type batcher struct {
	node     *Node
	adaptive bool            // more than maxFlushes where round trips are long
	trips    roundTrips      // of flushes and of calls that were sent by themselves
	life     context.Context // of flushes; ends with stop
	stop     context.CancelFunc

	mu       sync.Mutex
	closed   bool       // guarded by mu
	inFlight int        // guarded by mu; flushes, and calls that were sent by themselves
	queue    []*Pending // guarded by mu; in order. Callers that have left are in it, too
	waiting  int        // guarded by mu; calls that are queued or in a flush, and whose callers wait

	flushes sync.WaitGroup
}

func newBatcher(n *Node, adaptive bool) *batcher {
	// Connections that the store has made end flushes when they are closed.
	return &batcher{node: n, adaptive: adaptive, life: context.Background(), stop: func() {}}
}

// limit returns how many flushes may be in flight.
func (b *batcher) limit() int {
	if !b.adaptive {
		return maxFlushes
	}
	return max(maxFlushes, int(b.trips.shortest()/flushEvery))
}

// decide makes the node decide c, by itself or in a flush with other calls.
func (b *batcher) decide(ctx context.Context, c *Pending) {
	b.mu.Lock()
	if b.inFlight < b.limit() || b.closed { // a client that is closed refuses the call
		b.inFlight++
		b.mu.Unlock()
		began := remote.Elapsed()
		b.node.sendAlone(ctx, c)
		if queued := b.finish(nil, began, c.failure); len(queued) > 0 {
			go b.flush(queued)
		}
		return
	}
	b.queue = append(b.queue, c)
	b.waiting++
	c.waits = true
	b.mu.Unlock()
	select {
	case <-c.done:
		return
	case <-ctx.Done():
	}
	b.mu.Lock()
	c.abandoned = c.waits
	if c.waits {
		c.waits = false
		b.waiting--
	}
	b.mu.Unlock()
	if c.abandoned {
		c.Err = script.About(ctx.Err(), c.keys...)
	} else {
		<-c.done // it is there, or comes at once
	}
}

// flush sends calls, delivers their answers to the callers that have not left, and continues
// with the calls that have been queued meanwhile until there are none.
func (b *batcher) flush(calls []*Pending) {
	for len(calls) > 0 {
		began := remote.Elapsed()
		sortByCommand(calls)
		b.node.send(b.life, b.node.pick(), calls)
		err := calls[0].failure
		b.mu.Lock()
		b.deliver(calls)
		b.mu.Unlock()
		calls = b.finish(calls, began, err)
		b.flushes.Done()
	}
}

// deliver tells the callers of calls that have not left that their answers are set. It needs the lock.
func (b *batcher) deliver(calls []*Pending) {
	for _, c := range calls {
		if c.waits {
			c.waits = false
			b.waiting--
			c.done <- struct{}{} // which has room for it
		}
	}
}

// finish ends a flush, or a call that was sent by itself, that began at some time and ended
// with err. It returns the calls of the flush that takes its place, or none, in the memory
// of calls.
//
// Where two flushes may be in flight, each takes half of all calls that wait for an answer:
// else one could take all of them, and this process and the server would wait for each
// other in turns.
func (b *batcher) finish(calls []*Pending, began time.Duration, err error) []*Pending {
	ended := remote.Elapsed()
	if _, refused := said(err); err == nil || refused { // else it may have made no round trip
		b.trips.learn(ended-began, ended)
	}
	clear(calls)
	calls = calls[:0]
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := b.limit()
	if b.inFlight > limit || b.closed {
		b.inFlight-- // round trips are shorter now, and the other flushes take the calls; or close ends them
		return nil
	}
	share := maxBatch
	if limit == maxFlushes {
		share = min(max(minShare, (b.waiting+1)/maxFlushes), maxBatch)
	}
	n := 0
	for ; n < len(b.queue) && len(calls) < share; n++ {
		if c := b.queue[n]; c.waits {
			calls = append(calls, c)
		}
	}
	b.queue = slices.Delete(b.queue, 0, n)
	if len(calls) == 0 {
		b.inFlight--
		return nil
	}
	b.flushes.Add(1) // before close can wait
	return calls
}

// close waits for flushes that are in flight. Their connections are closed, or they end
// with life. Callers that wait get an error.
func (b *batcher) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.flushes.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.queue {
		c.failure = rueidis.ErrClosing
	}
	b.deliver(b.queue)
	b.queue = nil
}
