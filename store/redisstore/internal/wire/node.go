package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// The errors of calls that were not sent, or whose answer is worthless.
var (
	ErrCutOff   = errors.New("the server has not answered lately")
	errBusy     = errors.New("too many calls wait for the server")
	errReplicas = errors.New("too few replicas have confirmed in time")
)

// connections is how many links a node has. All calls that share a connection use
// the first one: the more of them travel together the less each costs, and two in
// use are slower than one. The second takes over when the first one is lost.
const connections = 2

// confirming is how many connections more a node has for calls that wait for
// replicas. A server reads nothing on a connection behind a WAIT until it ends.
const confirming = 4

// Node is one server, or the primary that Sentinels name. It is safe for
// concurrent use.
type Node struct {
	addr     string
	config   *Config
	codec    *script.Codec
	links    []atomic.Pointer[link] // for calls, then those for calls that wait for replicas
	directs  [abreast]atomic.Pointer[direct]
	keeper   *keeper // nil for the client of a caller
	breaker  breaker
	clock    serverClock
	inFlight atomic.Int64
	outages  tally                       // calls without an answer, or not sent
	loaded   [script.Numbers]atomic.Bool // programs that are there, by number
	company  company
	confirms company       // of calls that wait for replicas
	turn     atomic.Uint64 // of the connections for them
	apart    bool          // steps go alone: the client may send each to another server
	travels  sync.Pool     // of *traveller
	asked    atomic.Int64  // when a cluster last sent a call here ahead of its slot
}

// started is what breakers and clocks count time from. It never goes back.
var started = time.Now()

func elapsed() time.Duration { return time.Since(started) }

// newNode returns a node without connections.
func newNode(addr string, config *Config, codec *script.Codec) *Node {
	n := &Node{addr: addr, config: config, codec: codec}
	n.links = make([]atomic.Pointer[link], connections)
	if config.WaitReplicas > 0 {
		n.links = make([]atomic.Pointer[link], connections+confirming)
		n.confirms.always = true
	}
	return n
}

// Addr returns the server's address, or the primary's name.
func (n *Node) Addr() string { return n.addr }

// CutOff reports whether the node gets no calls, because it has not answered
// lately or there is no connection.
func (n *Node) CutOff() bool { return n.breaker.open() || n.client() == nil }

// Trouble returns why there is no connection, or nil when there is one.
func (n *Node) Trouble() error {
	if n.client() != nil || n.keeper == nil {
		return nil
	}
	return n.keeper.whyNot()
}

// CutOffs returns how often the node was cut off.
func (n *Node) CutOffs() int64 {
	if n.keeper == nil {
		return 0
	}
	return n.keeper.cutOffs.Load()
}

// InFlight returns the number of calls that wait for the node.
func (n *Node) InFlight() int64 { return n.inFlight.Load() }

// Outages returns the number of calls that the node did not answer, or that were
// not sent to it.
func (n *Node) Outages() int64 { return n.outages.sum() }

// Reasons returns the same number by reason. It has the reasons that occurred.
func (n *Node) Reasons() map[store.Reason]int64 { return n.outages.counts() }

// client returns the connection to use, or nil when there is none.
func (n *Node) client() *link {
	for i := range connections {
		if l := n.links[i].Load(); l != nil && !l.lost.Load() {
			return l
		}
	}
	return nil
}

// confirmer returns the connection for a call that waits for replicas, in turns.
// When there is none it returns c, on which others then wait, too.
func (n *Node) confirmer(c rueidis.Client) rueidis.Client {
	own := n.links[connections:]
	for range own {
		l := own[n.turn.Add(1)%uint64(len(own))].Load()
		if l != nil && !l.lost.Load() {
			return l.Client
		}
	}
	return c
}

// few is how many steps use a direct at least, unless no others are in flight. Less
// of them cost the server less on a link, where they travel with others.
const few = 8

// take returns a direct for some steps, which the caller has to itself, in place of
// c. It returns nil when none is free or c is better. Those of a node that has just lost its first link are no better than
// that, and calls behind or before another command need c.
func (n *Node) take(c rueidis.Client, steps int) *direct {
	l := n.links[0].Load()
	if l == nil || l.lost.Load() || l.Client != c || steps < few && n.inFlight.Load() > abreast {
		return nil
	}
	for i := range n.directs {
		if d := n.directs[i].Load(); d != nil && d.take() {
			return d
		}
	}
	return nil
}

// run has the node decide a step, and returns the instant at which it did.
// asking is for a slot that is on its way to the node.
func (n *Node) run(ctx context.Context, slot int, s script.Step, asking bool) (window.Instant, error) {
	c, began, err := n.enter(1)
	if err != nil {
		return 0, n.missed(err)
	}
	t := n.traveller()
	t.step, t.slot = s, slot
	at, err := n.decide(ctx, n.detour(c, s.Verb, asking), t, began)
	n.forget(t)
	return at, n.leave(ctx, began, err)
}

// decide sends a step, in one round trip where all goes well. The script may
// not be there yet, the deadline or the calendar of this machine may be off: the
// server has counted nothing then, and decide sends the step once more. It begins
// at began.
func (n *Node) decide(ctx context.Context, c rueidis.Client, t *traveller, began time.Duration) (window.Instant, error) {
	s, near := &t.step, script.Times{}
	for stale, off := 0, 0; ; began = elapsed() {
		times, err := n.aim(ctx, c, s.Times, began)
		if err != nil {
			return 0, err
		}
		if near.Near != 0 {
			times.Near = near.Near
		}
		times.Nears = near.Nears
		times.Around = near.Around
		if t.program, t.keys, t.args, err = n.codec.Command(s, times, t.room[:0]); err != nil {
			return 0, err
		}
		reply, err := n.ask(ctx, c, t)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", script.Among(t.keys), err)
		}
		at, err := n.codec.Decode(s, t.keys, reply)
		if !reply.Shares() {
			n.learn(at, times) // else the train has done so
		}
		again := false
		if err != nil {
			near, again = near.Again(err, at, off, len(s.Which))
		}
		switch {
		case errors.Is(err, script.ErrStale) && stale < maxStale && ctx.Err() == nil:
			stale++ // the server's clock may have been set forward; now it is known
		case again:
			off++
		default:
			return at, err
		}
	}
}

// learn uses the server's instant in a reply.
func (n *Node) learn(at window.Instant, t script.Times) {
	if at != 0 {
		n.learnAt(at, t, elapsed())
	}
}

// learnAt uses the server's instant in a reply that was read at some time, unless it is
// 0 or a test has set it.
func (n *Node) learnAt(at window.Instant, t script.Times, read time.Duration) {
	if at != 0 && t.Now == 0 {
		n.clock.learn(at, read)
	}
}

// eval runs a program that decides some steps on a direct when one is free, else
// with c, and returns the reply.
func (n *Node) eval(ctx context.Context, c rueidis.Client, steps int, p *script.Program, keys []string, args ...string) (script.Reply, error) {
	if d := n.take(c, steps); d != nil {
		if reply, sent, err := d.eval(ctx, p, keys, args); sent && !noScript(err) {
			return script.Reply{Text: reply}, err
		}
	}
	text, err := Eval(ctx, c, p, keys, args...).ToString()
	return script.Reply{Text: text}, err
}

// Eval runs a program, and sends its text to a server that does not have it.
func Eval(ctx context.Context, c rueidis.Client, p *script.Program, keys []string, args ...string) rueidis.RedisResult {
	reply := c.Do(ctx, bySHA(c, p, keys, args))
	if noScript(reply.Error()) {
		return c.Do(ctx, byText(c, p, keys, args))
	}
	return reply
}

func bySHA(c rueidis.Client, p *script.Program, keys, args []string) rueidis.Completed {
	return c.B().Evalsha().Sha1(p.SHA).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

func byText(c rueidis.Client, p *script.Program, keys, args []string) rueidis.Completed {
	return c.B().Eval().Script(p.Text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

// noScript reports whether a server does not have the text of a program.
func noScript(err error) bool {
	text, _ := said(err)
	return firstWord(text) == "NOSCRIPT"
}

// guard calls f with the node's client, unless the node is cut off or busy.
func (n *Node) guard(ctx context.Context, f func(rueidis.Client) (window.Instant, error)) (window.Instant, error) {
	c, began, err := n.enter(1)
	if err != nil {
		return 0, n.missed(err)
	}
	at, err := f(c)
	return at, n.leave(ctx, began, err)
}

// enter begins some calls, which exit ends. It returns the client to use and the
// time, or an error when the node is cut off or busy.
func (n *Node) enter(calls int) (rueidis.Client, time.Duration, error) {
	if n.breaker.open() {
		return nil, 0, ErrCutOff
	}
	l := n.client()
	switch {
	case l == nil:
		return nil, 0, n.keeper.whyNot()
	case n.config.Timeout == 0:
	case n.inFlight.Add(int64(calls)) > int64(n.config.InFlight):
		n.inFlight.Add(-int64(calls))
		return nil, 0, errBusy
	}
	return l.Client, elapsed(), nil
}

// leave ends a call that began at some time and ended with err, and returns err
// for the caller.
func (n *Node) leave(ctx context.Context, began time.Duration, err error) error {
	n.exit(ctx, 1, began, answers(err))
	if err == nil || errors.Is(err, store.ErrRepeated) {
		return err
	}
	return n.missed(err)
}

// exit ends some calls that were sent together, and passes on to the breaker
// whether the node has answered.
func (n *Node) exit(ctx context.Context, calls int, began time.Duration, answered bool) {
	if n.config.Timeout == 0 {
		return
	}
	n.inFlight.Add(-int64(calls))
	if answered {
		n.breaker.answered()
		return
	}
	now := elapsed()
	switch {
	case ctx.Err() == nil:
		// The connection has broken. The keeper makes another one.
	case !TimedOut(ctx):
		// The caller had less time than the time-out, or has gone.
	case now-began < n.config.Timeout/2:
		// It was the rest of the time of a call that another node has used up.
	case n.breaker.silent(began, now):
		n.keeper.look()
	}
}

// missed counts a call that the node did not answer, and adds the node to its
// error. A node that sends a call on to another one has answered it.
func (n *Node) missed(err error) error {
	if !redirected(err) {
		n.outages.add(ReasonOf(err))
	}
	return fmt.Errorf("%s: %w", n.addr, err)
}

// answers reports whether a call that ended with err got an answer.
func answers(err error) bool {
	if err == nil {
		return true
	}
	if _, answered := said(err); answered {
		return true
	}
	var state *script.StateError
	return errors.As(err, &state) ||
		slices.ContainsFunc(answered, func(target error) bool { return errors.Is(err, target) })
}

// answered are errors of calls that got an answer, or that need none.
var answered = []error{script.ErrStale, script.ErrForeign, script.ErrCalendar, store.ErrRepeated}

// aim returns t with a deadline on the server's clock: the end of ctx. It asks
// the server for its time once. It is now now, or a little later.
func (n *Node) aim(ctx context.Context, c rueidis.Client, t script.Times, now time.Duration) (script.Times, error) {
	deadline, ok := ctx.Deadline()
	if !ok || t.Now != 0 {
		return t, nil
	}
	if !n.clock.known() {
		if err := n.askTime(ctx, c); err != nil {
			return t, err
		}
	}
	t.Near = n.clock.at(now)
	end := deadline.Sub(started) // a shared one is not on the clock on the wall
	if sharedEnd(ctx) == nil {
		end = now + time.Until(deadline)
	}
	if own := n.clock.at(end); t.Deadline == 0 || own < t.Deadline {
		t.Deadline = own
	}
	return t, nil
}

// askTime asks the server for its time. The first callers know the length of a round
// trip from it.
func (n *Node) askTime(ctx context.Context, c rueidis.Client) error {
	began := elapsed()
	t, err := c.Do(ctx, c.B().Time().Build()).AsIntSlice()
	if err == nil && len(t) == 2 {
		n.company.learn(began, elapsed())
		n.clock.learn(window.Instant(t[0]*1e6+t[1]), elapsed())
	}
	return err
}

// ready reports whether a call may go to the node now.
func (n *Node) ready() bool { return !n.CutOff() }
