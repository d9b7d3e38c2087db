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

	// While fewer than few calls are in flight, calls leave at once, because each of them costs less than a
	// batch of as many.
	few = 4

	// flushEvery is about how long a call waits for others at most. Where round trips
	// are long, more flushes are in flight, so that one returns in every such time.
	flushEvery = 500 * time.Microsecond
)

// batcher sends the calls of callers who wait for one node at the same time together:
// each batch, or flush, has up to maxBatch calls, and those with the same program and slot share
// one run of it. It is safe for concurrent use.
//
// A caller that finds few calls in flight sends its call at once, by itself. The calls of others
// are queued. They leave when they are as many as are in flight: so there are about two flushes, and
// the server decides one while this process reads and writes the other. When a flush returns, fewer
// are in flight. So a caller waits for others only while calls are in flight, and batches grow with
// the load. Where round trips are long, they leave instead as long as fewer flushes are in flight
// than one for each flushEvery of a round trip.
//
// A server reads nothing on a connection behind a WAIT until it ends, so calls that wait for replicas leave in
// at most as many flushes as there are connections for them. The others are queued here, where they can be given up uncounted.
//
// Each caller has its own deadline, and stops waiting then, whatever happens to its
// flush: the deadline in the call keeps it from counting later. A flush itself waits for
// its replies until the connection ends.
//
// Invariant: while calls are queued, a flush is in flight, or a call that was sent by itself.
type batcher struct {
	node  *Node
	most  int             // flushes in flight, and nothing by itself; 0: as the load and round trips say
	trips roundTrips      // of flushes and of calls that were sent by themselves
	life  context.Context // of flushes; ends with stop
	stop  context.CancelFunc

	mu       sync.Mutex
	closed   bool       // guarded by mu
	queue    []*Pending // guarded by mu; in order
	inFlight int        // guarded by mu; calls that are in flight
	flights  int        // guarded by mu; flushes that they are in, or calls by themselves

	flushes sync.WaitGroup
}

func newBatcher(n *Node, most int) *batcher {
	// Connections that the store has made end flushes when they are closed.
	return &batcher{node: n, most: most, life: context.Background(), stop: func() {}}
}

// decide makes the node decide c, by itself or in a flush with other calls, and waits for the
// answer until ctx ends.
func (b *batcher) decide(ctx context.Context, c *Pending) {
	b.mu.Lock()
	if b.most == 0 && len(b.queue) == 0 && b.mayLeave(1) || b.closed { // a client that is closed refuses the call
		b.inFlight, b.flights = b.inFlight+1, b.flights+1
		b.mu.Unlock()
		began := remote.Elapsed()
		b.node.send(ctx, b.node.pick(), c.self[:])
		b.returned(c.self[:], began)
		return
	}
	b.queue = append(b.queue, c)
	c.waits = true
	b.flush()
	b.mu.Unlock()
	var ends <-chan time.Time // waiting for ctx itself costs more, until it is about to end
	if c.deadline != 0 {
		c.timer.Reset(c.deadline - remote.Elapsed())
		defer c.timer.Stop()
		ends = c.timer.C
	}
	select {
	case <-c.done:
		return
	case <-remote.CallerOf(ctx).Done():
	case <-ends:
		select {
		case <-c.done:
			return
		case <-ctx.Done():
		}
	}
	b.mu.Lock()
	c.abandoned, c.waits = c.waits, false
	counted := c.counted
	if at := slices.Index(b.queue, c); at >= 0 {
		b.queue = slices.Delete(b.queue, at, at+1)
	}
	b.mu.Unlock()
	switch {
	case !c.abandoned:
		<-c.done // it is there, or comes at once
	case counted:
		c.Err = unconfirmed(ctx.Err())
	default:
		c.Err = script.About(ctx.Err(), c.keys...)
	}
}

// mayLeave reports whether so many queued calls may leave now. It needs the lock.
func (b *batcher) mayLeave(queued int) bool {
	limit := b.most
	if trips := int(b.trips.shortest() / flushEvery); limit == 0 && trips > 2 {
		limit = trips
	}
	if limit > 0 {
		return b.flights < limit
	}
	return b.inFlight < few || queued >= b.inFlight
}

// flush sends the queued calls that may leave now. It needs the lock.
func (b *batcher) flush() {
	for len(b.queue) > 0 && !b.closed && b.mayLeave(len(b.queue)) {
		n := min(len(b.queue), maxBatch)
		calls := slices.Clone(b.queue[:n])
		b.queue = slices.Delete(b.queue, 0, n)
		b.inFlight, b.flights = b.inFlight+n, b.flights+1
		b.flushes.Go(func() {
			began := remote.Elapsed()
			sortByCommand(calls)
			b.node.send(b.life, b.node.pick(), calls)
			b.returned(calls, began)
		})
	}
}

// returned tells the callers of calls that were sent together at some time, or of one that was
// sent by itself, that their answers are set, unless they have left. It then sends the calls that may leave now.
func (b *batcher) returned(calls []*Pending, began time.Duration) {
	ended, err := remote.Elapsed(), calls[0].failure
	if _, refused := said(err); err == nil || refused { // else it may have made no round trip
		b.trips.learn(ended-began, ended)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight, b.flights = b.inFlight-len(calls), b.flights-1
	for _, c := range calls {
		if c.waits {
			c.waits = false
			c.done <- struct{}{} // which has room for it
		}
	}
	b.flush()
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
	left := b.queue
	b.queue, b.inFlight, b.flights = nil, b.inFlight+len(left), b.flights+1 // as if they had been sent
	b.mu.Unlock()
	for _, c := range left {
		c.failure = rueidis.ErrClosing
	}
	if len(left) > 0 {
		b.returned(left, 0)
	}
}
