package wire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// cluster is many nodes, each with its slots. It asks the nodes who serves which
// slots when one of them answers that a slot has moved, when one is out of reach,
// and every refreshEvery.
type cluster struct {
	config *Config
	codec  *script.Codec
	dialer *dialer
	slots  [slotCount]atomic.Pointer[Node]

	ctx    context.Context // done when the cluster is closed
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	news   chan struct{} // has one when the slots may have changed

	mu     sync.Mutex
	byAddr map[string]*Node // guarded by mu
	seeds  []string         // guarded by mu; addresses of nodes, replicas too
}

var (
	errNoNode  = errors.New("no node of the cluster serves the slot")
	errNoSlots = errors.New("no node of the cluster has answered who serves the slots")
)

func newCluster(config *Config, codec *script.Codec, d *dialer) *cluster {
	c := &cluster{
		config: config, codec: codec, dialer: d, seeds: config.Addrs,
		news: make(chan struct{}, 1), byAddr: map[string]*Node{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *cluster) Sharded() bool { return true }

func (c *cluster) Ready(slot int) bool {
	n := c.slots[slot].Load()
	if n == nil || !n.ready() {
		c.ask()
		return false
	}
	return true
}

func (c *cluster) Run(ctx context.Context, slot int, s script.Step) (window.Instant, error) {
	return c.follow(ctx, slot, func(n *Node, asking bool) (window.Instant, error) {
		return n.run(ctx, slot, s, asking)
	})
}

func (c *cluster) Client(ctx context.Context, slot int, f func(rueidis.Client) (window.Instant, error)) (window.Instant, error) {
	return c.follow(ctx, slot, func(n *Node, asking bool) (window.Instant, error) {
		return n.guard(ctx, func(client rueidis.Client) (window.Instant, error) {
			if asking {
				client = askingClient{client}
			}
			return f(client)
		})
	})
}

// askingClient is a client for keys of a slot that is on its way to its node.
type askingClient struct{ rueidis.Client }

// Do implements [rueidis.Client].
func (c askingClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return c.DoMulti(ctx, c.B().Asking().Build(), cmd)[1]
}

// node returns the node at addr. It makes one if need be, without a wait for its
// connections.
func (c *cluster) node(addr string) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byAddr[addr]
	if n == nil {
		n = newNode(addr, c.config, c.codec)
		n.keep(c.dialer, always(addr), false)
		c.byAddr[addr] = n
	}
	return n
}

func (c *cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*Node, 0, len(c.byAddr))
	for _, n := range c.byAddr {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *Node) int { return strings.Compare(a.addr, b.addr) })
	return all
}

func (c *cluster) Close() {
	c.cancel()
	// Closing a node that stands still takes a second, as does asking it for the
	// slots. A node that becomes known only now is not connected: the dialer is
	// closed.
	var closing sync.WaitGroup
	closing.Go(c.tasks.Wait)
	for _, n := range c.Nodes() {
		closing.Go(n.close)
	}
	closing.Wait()
}
