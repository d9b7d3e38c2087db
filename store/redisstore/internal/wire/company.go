package wire

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

const (
	// maxRun is the most steps that are decided in one run. A server does nothing
	// else meanwhile: a run of 64 takes it a tenth to a third of a millisecond.
	maxRun = 64

	// maxRunKeys is the most keys of a step that travels in a run.
	maxRunKeys = 24

	// abreast is how many runs of a line may be under way. With two of them the
	// server decides one while this machine reads and writes the other.
	abreast = 2

	// departure is about how long a caller waits for company at most. Where round
	// trips are long, more runs are under way, so that one returns in every such time.
	departure = 500 * time.Microsecond
)

// company brings callers together that wait for the same node at the same time:
// their steps travel, and are decided, in one run. The zero value is ready; it is
// safe for concurrent use.
//
// A caller that finds fewer runs under way than may be goes at once, alone. The
// others stand in line. When a run is back, those in line leave together. So a
// caller waits for company only while runs of others are under way.
//
// Invariant: while callers stand in a line, a run of that line is under way.
type company struct {
	mu     sync.Mutex
	closed bool            // guarded by mu
	lines  map[place]*line // guarded by mu; those with a run under way
	spare  []*line         // guarded by mu; unused, for new lines
	trip   quickest        // guarded by mu
	always bool            // [abreast] runs, even when round trips are long

	// While life is not nil, runs of callers without a deadline end with it.
	life context.Context
	end  context.CancelFunc

	carriers sync.WaitGroup
	travels  sync.Pool // of *traveller
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
	program int // the number of the program that decides one step
	slot    int // on a cluster; elsewhere 0
	now     window.Instant
}

// line is the callers for one place, in order.
type line struct {
	underWay int
	waiting  []*traveller
}

// traveller is a step that waits for its run.
type traveller struct {
	ctx    context.Context
	client rueidis.Client
	ops    int
	keys   []string
	args   string
	back   chan answer // has room for one
}

// answer is the reply to a step.
type answer struct {
	text string
	err  error
}

// ask sends a step, in a run with others where callers wait for each other, and
// returns the reply to it.
func (n *Node) ask(ctx context.Context, c rueidis.Client, s *script.Step, p *script.Program, keys []string, args string) (string, error) {
	d, detours := c.(detour)
	if d.asking || n.apart || p.Run == nil || len(keys) > maxRunKeys {
		return n.eval(ctx, c, 1, p, keys, args)
	}
	at := place{program: p.Number, now: s.Times.Now}
	if n.config.Mode == Cluster {
		at.slot = SlotOf([]byte(keys[0]))
	}
	co := &n.company
	if detours {
		co = &n.confirms
	}
	t := co.join(ctx, at, c, len(s.Which), keys, args)
	if t == nil {
		began := elapsed()
		text, err := n.eval(ctx, c, 1, p, keys, args)
		n.back(co, at, p, began, err)
		return text, err
	}
	over, gone := ends(ctx)
	select {
	case a := <-t.back:
		co.forget(t)
		if a.err != nil && again(a.err) {
			return n.eval(ctx, c, 1, p, keys, args)
		}
		return a.text, a.err
	case <-over:
	case <-gone:
	}
	return "", ctx.Err()
}

// again reports whether a step whose run ended with err should be sent alone. A
// slot that is on its way has only some keys of the run.
func again(err error) bool {
	text, _ := said(err)
	return firstWord(text) == "TRYAGAIN"
}

// join puts a step into its line. It returns nil when the step goes alone, at
// once; back ends that.
func (co *company) join(ctx context.Context, at place, c rueidis.Client, ops int, keys []string, args string) *traveller {
	co.mu.Lock()
	defer co.mu.Unlock()
	l := co.lines[at]
	if l == nil {
		l = co.open(at)
	}
	if l.underWay < co.most() || co.closed {
		l.underWay++
		return nil
	}
	t, _ := co.travels.Get().(*traveller)
	if t == nil {
		t = &traveller{back: make(chan answer, 1)}
	}
	t.ctx, t.client, t.ops, t.keys, t.args = ctx, c, ops, keys, args
	l.waiting = append(l.waiting, t)
	return t
}

// open makes a line. It needs the lock.
func (co *company) open(at place) *line {
	if co.lines == nil {
		co.lines = make(map[place]*line)
	}
	l := &line{}
	if last := len(co.spare) - 1; last >= 0 {
		l, co.spare = co.spare[last], co.spare[:last]
	}
	co.lines[at] = l
	return l
}

// forget keeps t for another step. Its answer has been read.
func (co *company) forget(t *traveller) {
	*t = traveller{back: t.back}
	co.travels.Put(t)
}

// back ends a step that went alone, from began on, and lets those leave that stand in
// its line.
func (n *Node) back(co *company, at place, p *script.Program, began time.Duration, err error) {
	if run := co.next(at, began, elapsed(), err, nil); len(run) > 0 {
		go n.carry(co, at, p, run)
	}
}

// next ends a run that was under way from began to ended, with err. It returns the
// steps of the one that takes its place, or none, in room. Whoever gets steps calls
// carry with them.
func (co *company) next(at place, began, ended time.Duration, err error, room []*traveller) []*traveller {
	co.mu.Lock()
	defer co.mu.Unlock()
	if replied(err) {
		co.trip.learn(ended-began, ended)
	}
	l := co.lines[at]
	if l.underWay > co.most() && !co.closed {
		l.underWay-- // round trips are shorter now; the steps go with the other runs
		return nil
	}
	run := l.leave(room)
	for co.closed && len(run) > 0 {
		for _, t := range run {
			t.back <- answer{err: rueidis.ErrClosing}
		}
		run = l.leave(run[:0])
	}
	if len(run) == 0 {
		if l.underWay--; l.underWay == 0 {
			delete(co.lines, at)
			if len(co.spare) < maxRun {
				co.spare = append(co.spare, l)
			}
		}
	}
	if len(run) > 0 {
		co.carriers.Add(1)
	}
	return run
}

// learn uses the round trip of a command of no line.
func (co *company) learn(began, ended time.Duration) {
	co.mu.Lock()
	defer co.mu.Unlock()
	co.trip.learn(ended-began, ended)
}

// replied reports whether a command that ended with err has made a round trip. A
// run whose callers have no time left ends at once, without one.
func replied(err error) bool {
	_, refused := said(err)
	return err == nil || refused
}

// most returns how many runs of a line may be under way. It needs the lock.
func (co *company) most() int {
	if co.always {
		return abreast
	}
	return max(abreast, int(co.trip.get()/departure))
}

// leave takes the first steps of a line whose callers are still there. It appends
// them to run, which is empty.
func (l *line) leave(run []*traveller) []*traveller {
	taken := 0
	for _, t := range l.waiting {
		if len(run) == maxRun {
			break
		}
		taken++
		if t.ctx.Err() == nil {
			run = append(run, t)
		}
	}
	rest := copy(l.waiting, l.waiting[taken:])
	clear(l.waiting[rest:])
	l.waiting = l.waiting[:rest]
	return run
}

// carrier sends the runs of a line, one after the other. It keeps what they need.
type carrier struct {
	run        []*traveller
	keys, args []string
}

// carry sends a run, hands the replies out, and goes on with the next run of the
// same line until there is none.
func (n *Node) carry(co *company, at place, p *script.Program, run []*traveller) {
	c := carrier{run: run}
	for len(c.run) > 0 {
		began := elapsed()
		err := n.deliver(co, &c, p)
		ended := elapsed()
		// Callers who have their answers may have another step for the next run.
		runtime.Gosched()
		clear(c.run)
		c.run = co.next(at, began, ended, err, c.run[:0])
		co.carriers.Done()
	}
}

// deliver sends a run and hands the replies out. It waits as long as the last of
// the callers. It returns the error of the run.
func (n *Node) deliver(co *company, c *carrier, p *script.Program) error {
	run := c.run
	ctx, cancel := co.latest(run)
	defer cancel()
	c.keys, c.args = c.keys[:0], c.args[:0]
	for _, t := range run {
		c.keys = append(c.keys, t.keys...)
		c.args = append(c.args, t.args)
	}
	args := c.args
	if len(run) > 1 {
		p, args = p.Run, script.Run(args)
	}
	text, err := n.eval(ctx, run[0].client, len(run), p, c.keys, args...)
	for _, t := range run {
		own := answer{err: err}
		if err == nil {
			own.text, text, own.err = text, "", nil
			if len(run) > 1 {
				own.text, text, own.err = script.Cut(own.text, t.ops)
			}
		}
		t.back <- own
	}
	return err
}

// latest returns a context that ends with the last of the callers.
func (co *company) latest(run []*traveller) (context.Context, context.CancelFunc) {
	var end time.Time
	var last context.Context
	for _, t := range run {
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

// close waits for runs that are under way, whose connections are closed, or which
// end with co.life. Callers that stand in line get an error.
func (co *company) close() {
	co.mu.Lock()
	co.closed = true
	co.mu.Unlock()
	if co.end != nil {
		co.end()
	}
	co.carriers.Wait()
}
