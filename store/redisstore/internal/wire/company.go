package wire

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

const (
	// maxTrain is the most steps that travel together. A server does nothing else
	// while it decides them: 64 in one run take it a tenth to a third of a
	// millisecond, and half a millisecond when each has a slot of its own.
	maxTrain = 64

	// maxRunKeys is the most keys of a step that travels with others.
	maxRunKeys = 24

	// abreast is how many trains may be under way. With two of them the server
	// decides one while this machine reads and writes the other.
	abreast = 2

	// departure is about how long a caller waits for company at most. Where round
	// trips are long, more trains are under way, so that one returns in every such
	// time.
	departure = 500 * time.Microsecond

	// unloadWithin is how long callers with answers wait at most for another train to
	// leave. A write takes less, unless the server has stopped reading.
	unloadWithin = 200 * time.Microsecond

	// ownWork is how much time callers with answers may take, for each of them, until the
	// carrier has its turn again. If they take more, the processor is left to them.
	ownWork = 8 * time.Microsecond

	// lookEvery is how often the contexts of callers are looked at that can be
	// cancelled. A caller who waits for two channels costs more than one who waits for
	// its answer.
	lookEvery = 10 * time.Millisecond
)

// company brings callers together that wait for the same node at the same time:
// their steps travel in one train. Those of one place are decided in one run. The
// zero value is ready; it is safe for concurrent use.
//
// A caller that finds fewer trains under way than may be goes at once, alone. The
// others stand in line. When a train is back, those in line leave together. So a
// caller waits for company only while others are under way.
//
// Invariant: while callers stand in line, a train is under way.
type company struct {
	mu       sync.Mutex
	closed   bool         // guarded by mu
	underWay int          // guarded by mu
	waiting  []*traveller // guarded by mu; in order
	live     []*traveller // guarded by mu; without an answer, those that wait and those under way
	heeded   *decision    // guarded by mu; the last one that was put into heeds, if it is there yet
	trip     quickest     // guarded by mu
	always   bool         // [abreast] trains, even when round trips are long

	// While life is not nil, trains of callers without a deadline end with it.
	life context.Context
	end  context.CancelFunc

	heeds map[*decision]func() bool // guarded by mu; ends the wait for a decision's end
	looks *time.Timer               // guarded by mu; nil while no live caller can be cancelled

	carriers sync.WaitGroup
}

// quickest is the shortest round trip of late: of about a second, and of the time
// before that. The others are longer because of what waits here or at the server. The
// zero value has seen none.
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

// place is what the steps of a run have in common.
type place struct {
	slot    int // on a cluster; elsewhere 0
	program *script.Program
	now     window.Instant
}

// traveller is a step, which may wait for its train. The goroutine that it belongs to
// fills it in and reads the answer.
type traveller struct {
	step   script.Step
	room   [4]string // for keys
	keys   []string
	args   string
	ctx    context.Context
	client rueidis.Client
	place

	back chan answer // has room for one
	left bool        // the caller has left it to its train

	end     *decision // ends the step, or nil
	watched bool      // the caller can be cancelled
	at      int       // its index in company.live, or -1; guarded by the company's mu
}

// answer is the reply to a step.
type answer struct {
	reply script.Reply
	err   error
	stays bool // the traveller may be in a line or a train yet

	// turn, if it is not nil, gets one from the caller, which is the last of those that
	// have their answers: see [train.pause].
	turn chan<- struct{}
}

// traveller returns a traveller to use until forget.
func (n *Node) traveller() *traveller {
	if t, ok := n.travels.Get().(*traveller); ok {
		return t
	}
	return &traveller{back: make(chan answer, 1), at: -1}
}

// forget keeps t for another step, unless a train may still have it.
func (n *Node) forget(t *traveller) {
	if t.left {
		return
	}
	*t = traveller{back: t.back, at: -1}
	n.travels.Put(t)
}

// ask sends a step, together with others where callers wait for each other, and
// returns the reply to it.
func (n *Node) ask(ctx context.Context, c rueidis.Client, t *traveller) (script.Reply, error) {
	d, detours := c.(detour)
	if d.asking || n.apart || len(t.keys) > maxRunKeys {
		return n.eval(ctx, c, 1, t.program, t.keys, t.args)
	}
	t.ctx, t.client, t.now = ctx, c, t.step.Times.Now
	co := &n.company
	if detours {
		co = &n.confirms
	}
	var gone <-chan struct{}
	t.end, gone, t.watched = ends(ctx)
	if !co.join(t) {
		began := elapsed()
		reply, err := n.eval(ctx, c, 1, t.program, t.keys, t.args)
		n.back(co, began, err)
		return reply, err
	}
	var a answer
	if gone == nil {
		a = <-t.back
	} else {
		select {
		case a = <-t.back:
		case <-gone:
			if !co.abandon(t) {
				a = <-t.back // it is on its way
				break
			}
			t.left = true
			return script.Reply{}, ctx.Err()
		}
	}
	t.left = a.stays
	if a.turn != nil {
		a.turn <- struct{}{}
	}
	if a.err != nil && again(a.err) {
		return n.eval(ctx, c, 1, t.program, t.keys, t.args)
	}
	return a.reply, a.err
}

// again reports whether a step whose run ended with err should be sent alone. A
// slot that is on its way has only some keys of the run.
func again(err error) bool {
	text, _ := said(err)
	return firstWord(text) == "TRYAGAIN"
}

// join puts a step into the line. It returns false when the step goes alone, at
// once; back ends that.
func (co *company) join(t *traveller) bool {
	co.mu.Lock()
	defer co.mu.Unlock()
	if co.underWay < co.most() || co.closed {
		co.underWay++
		return false
	}
	co.waiting = append(co.waiting, t)
	t.at, co.live = len(co.live), append(co.live, t)
	if t.end != nil && t.end != co.heeded {
		co.heed(t.end)
	}
	if t.watched && co.looks == nil {
		co.looks = time.AfterFunc(lookEvery, co.look)
	}
	return true
}

// look ends the steps of callers whose contexts have ended.
func (co *company) look() {
	co.mu.Lock()
	defer co.mu.Unlock()
	co.looks = nil
	for i := len(co.live) - 1; i >= 0; i-- {
		t := co.live[i]
		if !t.watched {
			continue
		}
		if err := t.ctx.Err(); err != nil {
			co.remove(t)
			t.back <- answer{err: err, stays: true}
		} else if co.looks == nil {
			co.looks = time.AfterFunc(lookEvery, co.look)
		}
	}
}

// heed makes the steps of callers whose decision is d end with it. It needs the lock.
func (co *company) heed(d *decision) {
	co.heeded = d
	if _, known := co.heeds[d]; known {
		return
	}
	if co.heeds == nil {
		co.heeds = make(map[*decision]func() bool)
	}
	co.heeds[d] = context.AfterFunc(d.Context, func() { co.over(d) })
}

// over ends the steps of callers whose decision is d.
func (co *company) over(d *decision) {
	co.mu.Lock()
	defer co.mu.Unlock()
	delete(co.heeds, d)
	if co.heeded == d { // whoever joins with d later needs another call of over
		co.heeded = nil
	}
	for i := len(co.live) - 1; i >= 0; i-- {
		if t := co.live[i]; t.end == d {
			co.remove(t)
			t.back <- answer{err: context.DeadlineExceeded, stays: true}
		}
	}
}

// abandon ends a step whose caller leaves. It returns false when the step has got its
// answer.
func (co *company) abandon(t *traveller) bool {
	co.mu.Lock()
	defer co.mu.Unlock()
	if t.at < 0 {
		return false
	}
	co.remove(t)
	return true
}

// remove takes t, which has no answer yet, out of live. It needs the lock.
func (co *company) remove(t *traveller) {
	last := len(co.live) - 1
	moved := co.live[last]
	co.live[t.at], moved.at = moved, t.at
	co.live[last] = nil
	co.live = co.live[:last]
	t.at = -1
}

// land takes the steps of a train out of live. It appends to landed for each of them
// whether it is to get an answer: its caller may have left.
func (co *company) land(landed []bool, steps []*traveller) []bool {
	co.mu.Lock()
	defer co.mu.Unlock()
	for _, t := range steps {
		landed = append(landed, t.at >= 0)
		if t.at >= 0 {
			co.remove(t)
		}
	}
	return landed
}

// back ends a step that went alone, from began on, with err, and lets those leave that
// stand in line.
func (n *Node) back(co *company, began time.Duration, err error) {
	if steps := co.next(began, elapsed(), err, nil); len(steps) > 0 {
		go n.carry(co, steps)
	}
}

// next ends a train that was under way from began to ended, with err. It returns the
// steps of the one that takes its place, or none, in room. Whoever gets steps calls
// carry with them.
func (co *company) next(began, ended time.Duration, err error, room []*traveller) []*traveller {
	co.mu.Lock()
	defer co.mu.Unlock()
	if replied(err) {
		co.trip.learn(ended-began, ended)
	}
	if co.underWay > co.most() && !co.closed {
		co.underWay-- // round trips are shorter now; the steps go with the other trains
		return nil
	}
	steps := co.leave(room)
	for co.closed && len(steps) > 0 {
		for _, t := range steps {
			co.remove(t)
			t.back <- answer{err: rueidis.ErrClosing}
		}
		steps = co.leave(steps[:0])
	}
	if len(steps) == 0 {
		co.underWay--
		return nil
	}
	co.carriers.Add(1)
	return steps
}

// learn uses the round trip of a command of no train.
func (co *company) learn(began, ended time.Duration) {
	co.mu.Lock()
	defer co.mu.Unlock()
	co.trip.learn(ended-began, ended)
}

// replied reports whether a command that ended with err has made a round trip. A
// train whose callers have no time left ends at once, without one.
func replied(err error) bool {
	_, refused := said(err)
	return err == nil || refused
}

// most returns how many trains may be under way. It needs the lock.
func (co *company) most() int {
	if co.always {
		return abreast
	}
	return max(abreast, int(co.trip.get()/departure))
}

// share returns how many steps leave together at most. Where two trains may be under way,
// each takes half of all steps. Without that, one of them may take all, and then the server
// waits for this machine, and this machine for the server. It needs the lock.
func (co *company) share() int {
	if co.most() > abreast {
		return maxTrain
	}
	return min(max(few, (len(co.live)+1)/abreast), maxTrain)
}

// leave takes the first steps of the line whose callers are still there, as many as share
// allows. It appends them to steps, which is empty. It needs the lock.
func (co *company) leave(steps []*traveller) []*traveller {
	taken, share := 0, co.share()
	for _, t := range co.waiting {
		if len(steps) == share {
			break
		}
		taken++
		if t.at >= 0 && t.ctx.Err() == nil {
			steps = append(steps, t)
		}
	}
	rest := copy(co.waiting, co.waiting[taken:])
	clear(co.waiting[rest:])
	co.waiting = co.waiting[:rest]
	return steps
}

// carry sends a train, hands the replies out, and goes on with the next one until
// there is none.
func (n *Node) carry(co *company, steps []*traveller) {
	t, next := &train{steps: steps}, &train{}
	n.depart(co, t)
	for {
		n.arrive(t)
		t.back(n, co, elapsed())
		early := co.crowded(len(t.steps))
		if !early {
			t.unload()
			t.pause()
		}
		next.steps = co.next(t.began, t.ended, t.err, next.steps[:0])
		if len(next.steps) > 0 {
			if early {
				t.unloadSoon() // the write may block
			}
			n.depart(co, next)
		}
		t.unload()
		t.pause()
		next.busy = elapsed()-t.ended > time.Duration(len(t.steps))*ownWork
		clear(t.steps)
		co.carriers.Done()
		if len(next.steps) == 0 {
			return
		}
		t, next = next, t
	}
}

// crowded reports whether as many callers stand in line as a train has that is back with
// so many steps. They leave before those of the train have their answers: the server
// decides their steps while this machine hands the answers out. Fewer callers wait for
// those, because smaller trains cost more for each step.
func (co *company) crowded(steps int) bool {
	co.mu.Lock()
	defer co.mu.Unlock()
	return len(co.waiting) >= max(few, steps)
}

// latest returns a context that ends with the last of the callers.
func (co *company) latest(steps []*traveller) (context.Context, context.CancelFunc) {
	var end time.Time
	var last context.Context
	for _, t := range steps {
		deadline, ok := t.ctx.Deadline()
		switch {
		case ok:
		case co.life != nil:
			return co.life, nothing
		default:
			return context.Background(), nothing
		}
		if deadline.After(end) {
			end, last = deadline, t.ctx
		}
	}
	if shared := sharedEnd(last); shared != nil {
		return shared, nothing
	}
	return context.WithDeadline(context.Background(), end)
}

// close waits for trains that are under way, whose connections are closed, or which
// end with co.life. Callers that stand in line get an error.
func (co *company) close() {
	co.mu.Lock()
	co.closed = true
	for d, stop := range co.heeds {
		stop()
		delete(co.heeds, d)
	}
	if co.looks != nil {
		co.looks.Stop()
	}
	co.mu.Unlock()
	if co.end != nil {
		co.end()
	}
	co.carriers.Wait()
	co.mu.Lock()
	defer co.mu.Unlock()
	for len(co.live) > 0 {
		t := co.live[0]
		co.remove(t)
		t.back <- answer{err: rueidis.ErrClosing, stays: true}
	}
}
