package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// What keeps a call from being sent, or makes its answer worthless.
var (
	errCutOff    = errors.New("the server has not answered lately")
	errBusy      = errors.New("too many calls wait for the server")
	errReplicas  = errors.New("too few replicas have confirmed in time")
	errNoPrimary = errors.New("no Sentinel has named the primary yet")
)

// node is one server, or the primary that Sentinels name. It is safe for
// concurrent use.
type node struct {
	addr     string
	config   *Config
	client   atomic.Pointer[rueidis.Client] // nil until Sentinels have been asked
	breaker  breaker
	clock    serverClock
	inFlight atomic.Int64
	outages  atomic.Int64 // calls that it did not answer, or was not asked
	asked    atomic.Int64 // when a cluster last sent a call here ahead of its slot
}

// started is what breakers and clocks count time from; it never goes back.
var started = time.Now()

func elapsed() time.Duration { return time.Since(started) }

func newNode(addr string, config *Config, client rueidis.Client) *node {
	n := &node{addr: addr, config: config}
	if client != nil {
		n.client.Store(&client)
	}
	return n
}

// request is what a store is asked, or the part of it that one node decides.
type request struct {
	program *program
	verb    store.Verb
	ops     []store.Op
	which   []int // of ops
	options callOptions
	asking  bool // the slot is on its way to the node
}

// run asks the node, and returns the instant at which it has answered.
func (n *node) run(ctx context.Context, r request) (window.Instant, error) {
	c, err := n.enter()
	if err != nil {
		return 0, n.missed(err)
	}
	at, err := n.ask(ctx, n.detour(ctx, c, &r), &r)
	return at, n.leave(ctx, err)
}

func (n *node) ask(ctx context.Context, c rueidis.Client, r *request) (window.Instant, error) {
	for attempt := 0; ; attempt++ {
		options, err := n.aim(ctx, c, r.options)
		if err != nil {
			return 0, err
		}
		at, err := r.program.run(ctx, c, r.verb, r.ops, r.which, options)
		if at != 0 && options.now == 0 {
			n.clock.learn(at, elapsed())
		}
		// Too late, and nothing was counted: perhaps the server's clock was
		// set forward, and now we know.
		if !errors.Is(err, errStale) || attempt > 0 || ctx.Err() != nil {
			return at, err
		}
	}
}

// guard calls f with the node's client, unless the node is cut off or busy.
func (n *node) guard(ctx context.Context, f func(rueidis.Client) (window.Instant, error)) (window.Instant, error) {
	c, err := n.enter()
	if err != nil {
		return 0, n.missed(err)
	}
	at, err := f(c)
	return at, n.leave(ctx, err)
}

// enter begins a call, which leave ends, and returns the client to use; it
// refuses when the node is cut off or busy.
func (n *node) enter() (rueidis.Client, error) {
	client := n.client.Load()
	switch {
	case client == nil:
		return nil, errNoPrimary
	case n.config.Timeout == 0:
	case !n.breaker.admits(elapsed()):
		return nil, errCutOff
	case n.inFlight.Add(1) > int64(n.config.InFlight):
		n.inFlight.Add(-1)
		return nil, errBusy
	}
	return *client, nil
}

// errTimeout is why the context of a call is done when the node's own time for
// it is over, and not the caller's.
var errTimeout = errors.New("no answer in time")

// leave ends a call that ended with err, and returns err for the caller.
func (n *node) leave(ctx context.Context, err error) error {
	if n.config.Timeout > 0 {
		n.inFlight.Add(-1)
		switch {
		case answers(err):
			n.breaker.answered()
		case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeout):
			// The caller had less time, or has gone: that says nothing here.
		default:
			n.breaker.silent(elapsed())
		}
	}
	if err == nil || errors.Is(err, store.ErrRepeated) {
		return err
	}
	return n.missed(err)
}

// missed counts a call that the node did not answer. One that it sends on to
// another node it has answered.
func (n *node) missed(err error) error {
	var said *rueidis.RedisError
	if !errors.As(err, &said) || !slices.Contains(redirects, firstWord(said.Error())) {
		n.outages.Add(1)
	}
	return fmt.Errorf("%s: %w", n.addr, err)
}

// answers says whether a call that ended with err got an answer.
func answers(err error) bool {
	var redis *rueidis.RedisError
	var state *StateError
	for _, said := range []error{nil, errStale, errForeign, errCalendar, store.ErrRepeated} {
		if errors.Is(err, said) {
			return true
		}
	}
	return errors.As(err, &redis) || errors.As(err, &state)
}

// aim gives a call its deadline on the server's clock, which is asked for once.
func (n *node) aim(ctx context.Context, c rueidis.Client, o callOptions) (callOptions, error) {
	deadline, ok := ctx.Deadline()
	if !ok || o.now != 0 {
		return o, nil
	}
	if !n.clock.known() {
		if err := n.askTime(ctx, c); err != nil {
			return o, err
		}
	}
	now := elapsed()
	o.near = n.clock.at(now)
	if own := n.clock.at(now + time.Until(deadline)); o.deadline == 0 || own < o.deadline {
		o.deadline = own
	}
	return o, nil
}

func (n *node) askTime(ctx context.Context, c rueidis.Client) error {
	t, err := c.Do(ctx, c.B().Time().Build()).AsIntSlice()
	if err == nil && len(t) == 2 {
		n.clock.learn(window.Instant(t[0]*1e6+t[1]), elapsed())
	}
	return err
}

// detour is the client for r: with what has to be sent before and behind it.
func (n *node) detour(ctx context.Context, c rueidis.Client, r *request) rueidis.Client {
	replicas := n.config.WaitReplicas
	if r.verb == store.Check {
		replicas = 0
	}
	if !r.asking && replicas == 0 {
		return c
	}
	within := n.config.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		within = time.Until(deadline) * 3 / 4 // so that its answer is here in time
	}
	return detour{c, r.asking, replicas, within}
}

// ready says whether a call may go to the node now.
func (n *node) ready() bool {
	return n.client.Load() != nil && !n.breaker.refuses(elapsed())
}

func (n *node) close() {
	if c := n.client.Load(); c != nil {
		(*c).Close()
	}
}
