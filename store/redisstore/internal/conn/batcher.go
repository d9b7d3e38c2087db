package conn

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// maxBatch is the most calls of one flush. A server does nothing else while it
	// decides them: 64 in one run of a script take it a tenth to a third of a
	// millisecond, and half a millisecond when each has a slot of its own.
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
	// their deadlines, so that a cancelled caller stops waiting. A caller who selects
	// on two channels costs more than one who waits for its answer.
	expireEvery = 10 * time.Millisecond
)

// batcher sends the calls of callers who wait for one node at the same time together:
// each flush has up to maxBatch calls, and those with the same program and slot share
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
// Invariant: while calls are queued, a flush is in flight.
type batcher struct {
	node   *Node
	always bool            // maxFlushes, even when round trips are long
	life   context.Context // of flushes; ends with stop
	stop   context.CancelFunc

	mu       sync.Mutex
	closed   bool          // guarded by mu
	inFlight int           // guarded by mu; flushes, and calls that were sent by themselves
	queue    []*call       // guarded by mu; in order. Callers that have left are in it, too
	live     []*call       // guarded by mu; queued or in a flush, and the caller waits for it
	trip     quickest      // guarded by mu
	expiry   *time.Timer   // guarded by mu; calls expire
	expires  time.Duration // guarded by mu; when it does so; 0: it does not

	flushes sync.WaitGroup
}

// answer is the answer to a call: a reply of the server, or an error.
type answer struct {
	reply     reply
	err       error
	abandoned bool // the call may still be in the queue or in a flush
}

func newBatcher(n *Node, always bool) *batcher {
	b := &batcher{node: n, always: always, stop: nothing}
	// Connections that the store has made end flushes when they are closed.
	b.life = context.Background()
	return b
}

// do has the node decide c, together with other calls unless it can leave at once. client
// is for the latter case.
func (b *batcher) do(ctx context.Context, client rueidis.Client, c *call) answer {
	if b.enqueue(c) {
		a := <-c.done
		c.abandoned = a.abandoned
		return a
	}
	began := elapsed()
	a := b.node.sendSolo(ctx, client, c)
	if next := b.finish(nil, began, a.err); len(next) > 0 {
		go b.flush(next)
	}
	return a
}

// enqueue puts c into the queue. It returns false when c is to be sent at once; finish
// ends that.
func (b *batcher) enqueue(c *call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inFlight < b.most() || b.closed {
		b.inFlight++
		return false
	}
	b.queue = append(b.queue, c)
	c.at, b.live = len(b.live), append(b.live, c)
	at := c.began + expireEvery
	if c.deadline != 0 {
		at = min(at, c.deadline)
	}
	b.expireAt(at)
	return true
}

// flush sends calls, hands their answers out, and goes on with those that have been
// queued meanwhile until there are none.
func (b *batcher) flush(calls []*call) {
	defer b.flushes.Done()
	var answers []answer
	for len(calls) > 0 {
		began := elapsed()
		answers = slices.Grow(answers[:0], len(calls))[:len(calls)]
		b.node.sendBatch(b.life, calls, answers)
		err := answers[0].err
		b.deliver(calls, answers)
		// Callers with answers often have another call, which then leaves with the next flush.
		runtime.Gosched()
		calls = b.finish(calls, began, err)
	}
}

// deliver hands the answers to calls out, unless their callers have left.
func (b *batcher) deliver(calls []*call, answers []answer) {
	b.mu.Lock()
	for i, c := range calls {
		if c.at < 0 {
			calls[i] = nil
		} else {
			b.remove(c)
		}
	}
	b.mu.Unlock()
	for i, c := range calls {
		if c != nil {
			c.done <- answers[i]
		}
	}
}

// finish ends a flush that began at some time and ended with err. It returns the calls
// of the flush that takes its place, or none, in the memory of calls.
func (b *batcher) finish(calls []*call, began time.Duration, err error) []*call {
	ended := elapsed()
	clear(calls)
	b.mu.Lock()
	defer b.mu.Unlock()
	if replied(err) {
		b.trip.learn(ended-began, ended)
	}
	first := calls == nil
	if b.inFlight > b.most() || b.closed {
		b.inFlight-- // round trips are shorter now, and the other flushes take the calls; or close ends them
		return nil
	}
	if calls = b.dequeue(calls[:0]); len(calls) == 0 {
		b.inFlight--
		return nil
	}
	if first {
		b.flushes.Add(1) // before close can wait
	}
	return calls
}

// dequeue appends the calls of the next flush to calls, which is empty. Where two flushes
// may be in flight, each takes half of all calls that wait for an answer: else one could
// take all of them, and this process and the server would wait for each other in turns.
// It needs the lock.
func (b *batcher) dequeue(calls []*call) []*call {
	share := maxBatch
	if b.most() == maxFlushes {
		share = min(max(minShare, (len(b.live)+1)/maxFlushes), maxBatch)
	}
	taken := 0
	for _, c := range b.queue {
		if len(calls) == share {
			break
		}
		taken++
		if c.at >= 0 {
			calls = append(calls, c)
		}
	}
	rest := copy(b.queue, b.queue[taken:])
	clear(b.queue[rest:])
	b.queue = b.queue[:rest]
	return calls
}

// most returns how many flushes may be in flight. It needs the lock.
func (b *batcher) most() int {
	if b.always {
		return maxFlushes
	}
	return max(maxFlushes, int(b.trip.get()/flushEvery))
}

// learn uses the round trip of a command that was not sent by b.
func (b *batcher) learn(began, ended time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trip.learn(ended-began, ended)
}

// remove takes c, whose caller waits, out of live. It needs the lock.
func (b *batcher) remove(c *call) {
	last := len(b.live) - 1
	moved := b.live[last]
	b.live[c.at], moved.at = moved, c.at
	b.live[last] = nil
	b.live = b.live[:last]
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
	if lag > lagging {
		b.expireAt(now + min(lag, graceAtMost)) // answers that have arrived are read first
		return
	}
	next := now + expireEvery
	for i := len(b.live) - 1; i >= 0; i-- {
		c := b.live[i]
		if err := c.ctx.Err(); err != nil {
			b.remove(c)
			c.done <- answer{err: err, abandoned: true}
		} else if c.deadline != 0 {
			// A context may end a moment after its deadline.
			next = min(next, max(c.deadline, now+time.Millisecond))
		}
	}
	if len(b.live) > 0 {
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
	for len(b.live) > 0 {
		c := b.live[0]
		b.remove(c)
		c.done <- answer{err: rueidis.ErrClosing, abandoned: true}
	}
	if b.expiry != nil {
		b.expiry.Stop()
	}
}

// replied reports whether a flush that ended with err has made a round trip. A call
// whose caller has no time left ends at once, without one.
func replied(err error) bool {
	_, refused := said(err)
	return err == nil || refused
}

// quickest is the shortest round trip of about the last second, and of the time before
// that. Others are longer because of what waits here or at the server. The zero value
// has seen none.
type quickest struct {
	best, before time.Duration
	since        time.Duration
}

// quickestFor is how long the shortest round trip is sought before the next time
// begins.
const quickestFor = time.Second

// learn uses a round trip that ended at now.
func (q *quickest) learn(trip, now time.Duration) {
	if q.best == 0 || now-q.since > quickestFor {
		q.before, q.best, q.since = q.best, trip, now
	}
	q.best = min(q.best, trip)
}

// get returns the shortest round trip, or 0.
func (q *quickest) get() time.Duration {
	if q.before == 0 {
		return q.best
	}
	return min(q.best, q.before)
}
