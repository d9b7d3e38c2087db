package wire

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
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
