package wire

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// Servers are where a store keeps its keys: one node for all of them, or a
// cluster. They are safe for concurrent use.
type Servers interface {
	// Run has the node that serves slot decide a step.
	Run(ctx context.Context, slot int, s script.Step) (window.Instant, error)

	// RunAll has the nodes that serve the slots of calls decide them, in as few
	// round trips as possible, and writes their errors. A node decides its calls in
	// their order, but for those that have to be sent again.
	RunAll(ctx context.Context, calls []Call)

	// Client calls f with the client of the node that serves slot.
	Client(ctx context.Context, slot int, f func(rueidis.Client) (window.Instant, error)) (window.Instant, error)

	// Ready reports whether that node may get a call now.
	Ready(slot int) bool

	// Sharded reports whether there are slots. Where there are none, one node
	// decides all ops of a call.
	Sharded() bool

	// Nodes returns the nodes in use, by address.
	Nodes() []*Node

	// Close ends all connections, but for those of a caller's client, and waits for
	// flushes that are in flight.
	Close()
}

// alone is one node for everything.
type alone struct {
	*Node
	sharded bool // the caller's client sends calls to the nodes of a cluster
}

// Around returns the servers that the caller's client is connected to. There is
// no time-out, no breaker, and no bound of calls in flight.
func Around(client rueidis.Client, codec *script.Codec) Servers {
	n := newNode("redis", &Config{}, codec)
	n.conns[0].Store(&connection{Client: client})
	n.apart = client.Mode() == rueidis.ClientModeCluster
	n.batcher.life, n.batcher.stop = context.WithCancel(context.Background())
	return alone{n, n.apart}
}

func (a alone) Run(ctx context.Context, _ int, s script.Step) (window.Instant, error) {
	return a.run(ctx, 0, s, false)
}

func (a alone) RunAll(ctx context.Context, calls []Call) {
	own := make([]*Call, len(calls))
	for i := range calls {
		own[i] = &calls[i]
	}
	a.runAll(ctx, own)
}

func (a alone) Client(ctx context.Context, _ int, f func(rueidis.Client) (window.Instant, error)) (window.Instant, error) {
	return a.guard(ctx, f)
}

func (a alone) Ready(int) bool { return a.ready() }
func (a alone) Sharded() bool  { return a.sharded }
func (a alone) Nodes() []*Node { return []*Node{a.Node} }
func (a alone) Close()         { a.close() }
