package conn

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
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

	// expireEvery is how often the contexts of waiting callers are checked, besides at
	// their deadlines, so that a cancelled caller stops waiting; see
	// decisionContext for those that are not watched. A caller who selects
	// on two channels costs more than one who waits for its answer.
	expireEvery = 10 * time.Millisecond
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
	closed   bool          // guarded by mu
	inFlight int           // guarded by mu; flushes, and calls that were sent by themselves
	queue    []*Call       // guarded by mu; in order. Callers that have left are in it, too
	waiting  []*Call       // guarded by mu; queued or in a flush, and the caller waits for it
	expiry   *time.Timer   // guarded by mu; calls expire
	expires  time.Duration // guarded by mu; when it does so; 0: it does not
	grace    bool          // guarded by mu; expire was late and has waited for answers once

	flushes sync.WaitGroup
}

func newBatcher(n *Node, adaptive bool) *batcher {
	// Connections that the store has made end flushes when they are closed.
	return &batcher{node: n, adaptive: adaptive, life: context.Background(), stop: nothing}
}

// limit returns how many flushes may be in flight.
func (b *batcher) limit() int {
	if !b.adaptive {
		return maxFlushes
	}
	return max(maxFlushes, int(b.trips.shortest()/flushEvery))
}

// decide makes the node decide c, by itself or in a flush with other calls.
func (b *batcher) decide(ctx context.Context, c *Call) {
	b.mu.Lock()
	if b.inFlight < b.limit() || b.closed { // a client that is closed refuses the call
		b.inFlight++
		b.mu.Unlock()
		began := elapsed()
		b.node.sendAlone(ctx, c)
		if queued := b.finish(nil, began, c.failure); len(queued) > 0 {
			go b.flush(queued)
		}
		return
	}
	b.queue = append(b.queue, c)
	c.at, b.waiting = len(b.waiting), append(b.waiting, c)
	at := c.began + expireEvery
	if c.deadline != 0 {
		at = min(at, c.deadline)
	}
	b.expireAt(at)
	b.mu.Unlock()
	if err := <-c.done; err != nil {
		c.abandoned, c.Err = true, script.About(err, c.keys...)
	}
}

// flush sends calls, delivers their answers to the callers that have not left, and continues
// with the calls that have been queued meanwhile until there are none.
func (b *batcher) flush(calls []*Call) {
	for len(calls) > 0 {
		began := elapsed()
		sortByCommand(calls)
		b.node.send(b.life, b.node.pick(), calls)
		err := calls[0].failure
		b.mu.Lock()
		for i, c := range calls {
			if c.at < 0 {
				calls[i] = nil
			} else {
				b.remove(c)
			}
		}
		b.mu.Unlock()
		for _, c := range calls {
			if c != nil {
				c.done <- nil
			}
		}
		calls = b.finish(calls, began, err)
		b.flushes.Done()
	}
}

// finish ends a flush, or a call that was sent by itself, that began at some time and ended
// with err. It returns the calls of the flush that takes its place, or none, in the memory
// of calls.
//
// Where two flushes may be in flight, each takes half of all calls that wait for an answer:
// else one could take all of them, and this process and the server would wait for each
// other in turns.
func (b *batcher) finish(calls []*Call, began time.Duration, err error) []*Call {
	ended := elapsed()
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
		share = min(max(minShare, (len(b.waiting)+1)/maxFlushes), maxBatch)
	}
	n := 0
	for ; n < len(b.queue) && len(calls) < share; n++ {
		if c := b.queue[n]; c.at >= 0 {
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

// remove takes c, whose caller waits, out of waiting. It needs the lock.
func (b *batcher) remove(c *Call) {
	last := len(b.waiting) - 1
	moved := b.waiting[last]
	b.waiting[c.at], moved.at = moved, c.at
	b.waiting[last] = nil
	b.waiting = b.waiting[:last]
	c.at = -1
}

// expireAt makes expire run at a time, unless it does so earlier. It needs the lock.
func (b *batcher) expireAt(at time.Duration) {
	if b.expires != 0 && b.expires <= at {
		return
	}
	b.expires = at
	wait := at - elapsed()
	if b.expiry == nil {
		b.expiry = time.AfterFunc(wait, b.expire)
	} else {
		b.expiry.Reset(wait)
	}
}

// expire ends the waits of callers whose contexts are done.
func (b *batcher) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := elapsed()
	lag := now - b.expires
	b.expires = 0
	if b.closed {
		return
	}
	if b.grace = lag > lagging && !b.grace; b.grace {
		// Answers that have arrived are read first. On a machine that is late each time this
		// must not repeat, because callers would wait as long as it is busy.
		b.expireAt(now + min(lag, graceAtMost))
		return
	}
	next := now + expireEvery
	for i := len(b.waiting) - 1; i >= 0; i-- {
		c := b.waiting[i]
		if err := c.ctx.Err(); err != nil {
			b.remove(c)
			c.done <- err
		} else if c.deadline != 0 {
			// A context may end a moment after its deadline.
			next = min(next, max(c.deadline, now+time.Millisecond))
		}
	}
	if len(b.waiting) > 0 {
		b.expireAt(next)
	}
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
	for len(b.waiting) > 0 {
		c := b.waiting[0]
		b.remove(c)
		c.done <- rueidis.ErrClosing
	}
	if b.expiry != nil {
		b.expiry.Stop()
	}
}
