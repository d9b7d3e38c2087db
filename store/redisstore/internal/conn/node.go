package conn

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
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

var errReplicas = errors.New("too few replicas have confirmed in time")

// The connections of a node. The library pipelines on the shared ones. Calls to a node nearby share
// the first, because each of them costs less the more they are, and the second takes over when the
// first one is lost. A distant node has the others, too, and gets each flush on the next one: there a
// segment that is lost stalls all that follows it on its connection for longer than most time-outs.
//
// A server reads nothing on a connection behind a WAIT until it ends, so calls that wait for
// replicas have connections of their own.
const (
	nearby     = 2 // conns[:nearby] are those of all nodes
	shared     = 4 // conns[:shared]
	confirming = 4

	// distance is the round trip from which on a node is distant.
	distance = 4 * time.Millisecond
)

// Node is one server, or the primary that Sentinels name. It is safe for
// concurrent use.
type Node struct {
	remote.Server
	config    *Config
	codec     *script.Codec
	conns     []atomic.Pointer[connection] // the shared ones, those for calls that wait for replicas
	manager   *manager                     // nil for the client of a caller
	clock     serverClock
	loaded    sync.Map // the programs that the server has
	batcher   *batcher
	confirms  *batcher      // of calls that wait for replicas
	turn      atomic.Uint64 // of connections
	clustered bool          // calls share no command: the caller's client may send each to another server
	asked     atomic.Int64  // when a cluster last sent a call here ahead of its slot
}

// newNode returns a node without connections.
func newNode(addr string, config *Config, codec *script.Codec) *Node {
	n := &Node{config: config, codec: codec}
	n.Addr, n.Changed, n.Outage = addr, config.Changed, Outage
	n.Connected = func() bool { return n.client() != nil }
	n.conns = make([]atomic.Pointer[connection], shared)
	if config.WaitReplicas > 0 {
		n.conns = make([]atomic.Pointer[connection], shared+confirming)
	}
	n.batcher, n.confirms = newBatcher(n, 0), newBatcher(n, confirming)
	return n
}

// Trouble returns why there is no connection, or nil when there is one.
func (n *Node) Trouble() error {
	if n.client() != nil || n.manager == nil {
		return nil
	}
	return n.manager.unavailable()
}

// client returns the connection to use, or nil when there is none.
func (n *Node) client() *connection {
	for i := range shared {
		if l := n.conns[i].Load(); l != nil && !l.lost.Load() {
			return l
		}
	}
	return nil
}

// extra reports whether only distant nodes have connection i.
func extra(i int) bool { return i >= nearby && i < shared }

// distant reports whether the node has all shared connections.
func (n *Node) distant() bool { return n.batcher.trips.shortest() >= distance }

// pick returns the connection for the next calls, or nil when there is none.
func (n *Node) pick() *connection {
	if n.distant() {
		for range shared {
			if l := n.conns[n.turn.Add(1)%shared].Load(); l != nil && !l.lost.Load() {
				return l
			}
		}
	}
	return n.client()
}

// confirmer returns the connection for calls that wait for replicas, and counts it as used: a free one, unless
// slices of batches use them, too. When there is none it returns other, on which others then wait, too.
func (n *Node) confirmer(other *connection) *connection {
	n.confirms.mu.Lock()
	defer n.confirms.mu.Unlock()
	best := other
	for i := range n.conns[shared:] {
		l := n.conns[shared+i].Load()
		if l != nil && !l.lost.Load() && (best == other || l.users.Load() < best.users.Load()) {
			best = l
		}
	}
	best.users.Add(1)
	return best
}

// decide has the node decide calls, and sets their results: one call together with those of
// other callers, several as they are, in their order. It sends those again that the server
// has not decided, and not counted, for a reason that is gone now; but those of several that the
// server left for later get [script.ErrLater], because each round trip has a time-out of its
// own. It may change the order of the list.
func (n *Node) decide(ctx context.Context, calls []*Pending) {
	namespace := calls[0].Ops[0].Space.Namespace()
	began, err := n.admit(ctx, namespace, len(calls))
	if err != nil {
		for _, c := range calls {
			c.Err = n.countOutage(err)
		}
		return
	}
	left := calls
	for len(left) > 0 {
		now, deadline, end, err := n.instants(ctx, remote.Elapsed())
		ready := 0
		for i, c := range left {
			c.deadline = end
			if c.Err = err; err == nil {
				c.program, c.keys, c.args, c.Err = n.codec.Encode(&c.Call, now, deadline, c.room[:0])
			}
			c.ownCommand = c.keysMoved || c.asking || n.clustered || len(c.keys) > maxBatchKeys
			c.confirms = n.config.WaitReplicas > 0 && c.Verb != store.Check && !givesBack(&c.Call)
			if c.Err == nil {
				left[i], left[ready] = left[ready], c
				ready++
			}
		}
		if left = left[:ready]; ready == 0 {
			break
		}
		sent := left
		switch c := left[0]; {
		case c.done == nil || c.ownCommand: // of a slice of a batch, or by itself
			sent = inOrder(left)
			n.send(ctx, n.pick(), sent)
		case c.confirms:
			n.confirms.decide(ctx, c)
		default:
			n.batcher.decide(ctx, c)
		}
		again := len(sent) // where those begin that are sent again, in their order
		for i, c := range slices.Backward(sent) {
			if n.resolve(ctx, c) {
				again--
				sent[i], sent[again] = sent[again], c
			}
		}
		left = left[again:]
		if calls[0].done == nil && slices.ContainsFunc(left, func(c *Pending) bool { return errors.Is(c.Err, script.ErrLater) }) {
			break
		}
	}
	for _, c := range left {
		c.Err = nil // neither an outage nor a refusal
	}
	answered := false
	for _, c := range calls {
		answered = answered || answers(c.Err)
		if c.Err != nil && !script.IsRefusal(c.Err) {
			c.Err = n.countOutage(c.Err)
		}
	}
	n.finish(ctx, namespace, len(calls), began, answered)
	for _, c := range left {
		c.Err = script.ErrLater
	}
}

// instants returns the server's instant at now, or a little later, and at the end of ctx; and
// that end as a time since some fixed instant. All are 0 if ctx does not end. It asks the
// server for its time if that is not known yet.
func (n *Node) instants(ctx context.Context, now time.Duration) (at, deadline window.Instant, end time.Duration, err error) {
	until, ok := ctx.Deadline()
	if !ok {
		return 0, 0, 0, nil
	}
	if !n.clock.known() {
		if l := n.pick(); l != nil {
			err = n.askTime(ctx, l.Client)
		} else {
			err = remote.ErrGone
		}
	}
	if end = now + time.Until(until); err == nil {
		at, deadline = n.clock.at(now), n.clock.at(end)
	}
	return at, deadline, end, err
}

// resolve writes the results or the error in the reply to c, and reports whether c has to be
// sent again.
func (n *Node) resolve(ctx context.Context, c *Pending) (again bool) {
	err := c.Err
	if !c.abandoned {
		err = c.failure
	}
	switch {
	case errors.Is(err, errReplicas):
		c.At, _ = n.codec.Decode(&c.Call, c.keys, c.reply) // they hold
		c.Err = script.About(err, c.keys...)
		return false
	case c.abandoned:
		return false
	case err != nil:
		c.Err = script.About(err, c.keys...)
		switch word := wordOf(err); {
		case word == "TRYAGAIN" && !c.ownCommand:
			c.keysMoved = true // not all calls of the batch can be decided
			return true
		case word == "READONLY" && n.manager != nil:
			n.manager.readOnly.Store(true)
		}
		return false
	}
	if c.At, c.Err = n.codec.Decode(&c.Call, c.keys, c.reply); c.Err == nil {
		return false
	}
	if errors.Is(c.Err, script.ErrLater) && (c.done == nil || ctx.Err() == nil) {
		return true
	}
	if errors.Is(c.Err, script.ErrStale) && c.stale < maxStale && ctx.Err() == nil {
		c.stale++ // the server's clock may have been set forward; now it is known
		return true
	}
	return c.Again(c.Err, c.At)
}

// maxStale is how often a call that came too late is sent again, while its caller has
// time: the second time the deadline is right, unless the clock of the server has changed
// again.
const maxStale = 3

// admit counts some calls of a namespace as in flight until finish, and returns the time. It returns an error when the
// node is unavailable or busy.
func (n *Node) admit(ctx context.Context, namespace string, calls int) (time.Duration, error) {
	switch {
	case n.Breaker.Open():
		return 0, remote.ErrUnavailable
	case n.client() == nil:
		return 0, n.manager.unavailable()
	case n.config.Timeout == 0:
		return remote.Elapsed(), nil
	}
	err := n.Begin(ctx, namespace, calls, n.config.InFlight)
	return remote.Elapsed(), err
}

// finish ends some calls that were sent together, and passes on to the breaker
// whether the node has answered.
func (n *Node) finish(ctx context.Context, namespace string, calls int, began time.Duration, answered bool) {
	if n.config.Timeout == 0 {
		return
	}
	n.End(namespace, calls)
	if n.Heard(ctx, answered, began, n.config.Timeout) {
		n.manager.wake()
	}
}

// givesBack reports whether all that c can do is give hits back. If that is lost, too many count.
func givesBack(c *script.Call) bool {
	return c.Verb == store.Refund || c.Verb == store.Cancel ||
		c.Verb == store.Settle && !slices.ContainsFunc(c.Ops, func(op store.Op) bool { return op.Hold == nil || !op.Hold.Sure })
}

// countOutage counts a call that the node did not answer, and adds the node to its
// error. A node that sends a call on to another one has answered it.
func (n *Node) countOutage(err error) error {
	if word := wordOf(err); word != "MOVED" && word != "ASK" && word != "TRYAGAIN" {
		n.Count(ReasonOf(err))
	}
	return fmt.Errorf("%s: %w", n.Addr, err)
}

// askTime asks the server for its time. The first callers know the length of a round
// trip from it.
func (n *Node) askTime(ctx context.Context, c rueidis.Client) error {
	began := remote.Elapsed()
	t, err := c.Do(ctx, c.B().Time().Build()).AsIntSlice()
	if err == nil && len(t) == 2 {
		now := remote.Elapsed()
		n.clock.learn(window.Instant(t[0]*1e6+t[1]), now)
		n.batcher.trips.learn(now-began, now)
	}
	return err
}
