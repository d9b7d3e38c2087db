package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/window"
)

// servers are what a store's keys are kept on.
type servers interface {
	// run asks the node that serves slot.
	run(ctx context.Context, slot int, r request) (window.Instant, error)
	// client calls f with the client of that node.
	client(ctx context.Context, slot int, f func(rueidis.Client) (window.Instant, error)) (window.Instant, error)
	// ready says whether that node may be asked now.
	ready(slot int) bool
	// sharded says whether there are slots at all: where there are none, all
	// ops of a call go to one node.
	sharded() bool
	// nodes are the ones in use.
	nodes() []*node
	close()
}

// alone is one node for everything.
type alone struct{ *node }

func (a alone) run(ctx context.Context, _ int, r request) (window.Instant, error) {
	return a.node.run(ctx, r)
}

func (a alone) client(ctx context.Context, _ int, f func(rueidis.Client) (window.Instant, error)) (window.Instant, error) {
	return a.guard(ctx, f)
}

func (a alone) ready(int) bool { return a.node.ready() }
func (a alone) sharded() bool  { return false }
func (a alone) nodes() []*node { return []*node{a.node} }

// cluster is many nodes, each with its slots. Which has which it learns from
// the nodes: when one says that a slot has moved, when one is out of reach,
// and every refreshEvery.
type cluster struct {
	config *Config
	dialer *dialer
	slots  [slotCount]atomic.Pointer[node]

	ctx    context.Context // done when the cluster is closed
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	news   chan struct{} // has one when the slots should be asked for

	mu     sync.Mutex
	byAddr map[string]*node // guarded by mu
	seeds  []string         // guarded by mu; addresses of nodes, replicas too
}

var (
	errNoNode  = errors.New("no node of the cluster serves the slot")
	errNoSlots = errors.New("no node of the cluster has told who serves the slots")
)

// maxRedirects is how often a call is sent on: to where a slot has moved, and
// on from there while it is still moving.
const maxRedirects = 5

func newCluster(config *Config, d *dialer) *cluster {
	c := &cluster{
		config: config, dialer: d, seeds: config.Addrs,
		news: make(chan struct{}, 1), byAddr: map[string]*node{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *cluster) sharded() bool { return true }

func (c *cluster) ready(slot int) bool {
	n := c.slots[slot].Load()
	if n == nil || !n.ready() {
		c.ask()
		return false
	}
	return true
}

func (c *cluster) run(ctx context.Context, slot int, r request) (window.Instant, error) {
	return c.follow(ctx, slot, func(n *node, asking bool) (window.Instant, error) {
		r.asking = asking
		return n.run(ctx, r)
	})
}

func (c *cluster) client(ctx context.Context, slot int, f func(rueidis.Client) (window.Instant, error)) (window.Instant, error) {
	return c.follow(ctx, slot, func(n *node, asking bool) (window.Instant, error) {
		return n.guard(ctx, func(client rueidis.Client) (window.Instant, error) {
			if asking {
				client = detour{Client: client, asking: true}
			}
			return f(client)
		})
	})
}

// follow calls ask with the node that serves slot, and with the one that this
// one sends it to: what a node sends on it has not counted.
func (c *cluster) follow(ctx context.Context, slot int, ask func(n *node, asking bool) (window.Instant, error)) (window.Instant, error) {
	n, asking := c.slots[slot].Load(), false
	if n == nil {
		c.ask()
		return 0, errNoNode
	}
	for sent := 0; ; sent++ {
		at, err := ask(n, asking)
		var said *rueidis.RedisError
		if err == nil || !errors.As(err, &said) || sent == maxRedirects {
			if err != nil {
				c.ask()
			}
			return at, err
		}
		switch verb, addr := redirect(said.Error(), n.addr); verb {
		case "MOVED":
			n, asking = c.node(addr), false
			c.slots[slot].Store(n)
			c.ask()
		case "ASK":
			n, asking = c.node(addr), true
			n.asked.Store(int64(elapsed()))
		case "TRYAGAIN":
			// Some keys of the call have moved, the others not yet.
			select {
			case <-time.After(time.Millisecond << sent):
			case <-ctx.Done():
				return at, err
			}
		default:
			c.ask()
			return at, err
		}
	}
}

// redirects are the first words of what is no outage.
var redirects = []string{"MOVED", "ASK", "TRYAGAIN"}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// redirect takes the first word and the address out of what a node says; where
// the address has no host, it means its own.
func redirect(said, own string) (verb, addr string) {
	verb = firstWord(said)
	if verb != "MOVED" && verb != "ASK" {
		return verb, ""
	}
	words := strings.Fields(said)
	if len(words) < 3 {
		return "", ""
	}
	colon := strings.LastIndexByte(words[2], ':')
	if colon < 0 {
		return "", ""
	}
	return verb, join(words[2][:colon], words[2][colon+1:], own)
}

// join is host and port as an address; own is for a host that is not said.
func join(host, port, own string) string {
	host = strings.Trim(host, "[]")
	if host == "" || host == "?" {
		host, _, _ = net.SplitHostPort(own)
	}
	return net.JoinHostPort(host, port)
}

// node is the node at addr, which is made if need be, without a wait.
func (c *cluster) node(addr string) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byAddr[addr]
	if n == nil {
		n = newNode(addr, c.config, c.config.connect(addr, c.dialer))
		c.byAddr[addr] = n
	}
	return n
}

func (c *cluster) nodes() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*node, 0, len(c.byAddr))
	for _, n := range c.byAddr {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *node) int { return strings.Compare(a.addr, b.addr) })
	return all
}

// ask has the slots asked for soon, by the goroutine that does so.
func (c *cluster) ask() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// watch keeps the slots up to date until the cluster is closed.
func (c *cluster) watch() {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		case <-c.news:
		}
		_ = c.refresh(c.ctx) // there will be more news while it does not work
		// A cluster that is in trouble is not asked all the time.
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(breakFor):
		}
	}
}

// refresh asks one node after the other who serves which slots, those that
// answer first, until one says it.
func (c *cluster) refresh(ctx context.Context) error {
	all := c.nodes()
	slices.SortStableFunc(all, func(a, b *node) int {
		return int(a.breaker.trial.Load() - b.breaker.trial.Load())
	})
	err := errNoSlots
	for _, n := range all {
		if err = c.learn(ctx, n.addr, *n.client.Load()); err == nil {
			return nil
		}
	}
	c.mu.Lock()
	seeds := slices.Clone(c.seeds)
	c.mu.Unlock()
	for _, addr := range seeds {
		if slices.ContainsFunc(all, func(n *node) bool { return n.addr == addr }) {
			continue
		}
		client := c.config.connect(addr, c.dialer)
		err = c.learn(ctx, addr, client)
		client.Close()
		if err == nil {
			return nil
		}
	}
	return err
}

// learn asks the node at addr who serves which slots.
func (c *cluster) learn(ctx context.Context, addr string, client rueidis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	ranges, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return fmt.Errorf("%s: %w", addr, err)
	}
	owners, seeds := map[string]bool{}, slices.Clone(c.config.Addrs)
	for _, r := range ranges {
		parts, err := r.ToArray()
		if err != nil || len(parts) < 3 {
			return fmt.Errorf("%s: a range of slots that reads %v", addr, r)
		}
		from, err1 := parts[0].AsInt64()
		to, err2 := parts[1].AsInt64()
		if err1 != nil || err2 != nil || from < 0 || to >= slotCount {
			return fmt.Errorf("%s: a range of slots that reads %v", addr, r)
		}
		for i, part := range parts[2:] {
			at, err := part.ToArray()
			if err != nil || len(at) < 2 {
				return fmt.Errorf("%s: a range of slots that reads %v", addr, r)
			}
			host, _ := at[0].ToString() // none means its own
			port, err := at[1].AsInt64()
			if err != nil {
				return fmt.Errorf("%s: a range of slots that reads %v", addr, r)
			}
			there := join(host, fmt.Sprint(port), addr)
			seeds = append(seeds, there)
			if i > 0 {
				continue // a replica
			}
			owners[there] = true
			n := c.node(there)
			for slot := from; slot <= to; slot++ {
				c.slots[slot].Store(n)
			}
		}
	}
	if len(owners) == 0 {
		return fmt.Errorf("%s: %w", addr, errNoSlots)
	}
	c.forget(owners, seeds)
	return nil
}

// keepAsked is how long a node that serves nothing yet is kept for the slots
// that are on their way to it.
const keepAsked = time.Minute

// forget drops the nodes that serve nothing any more.
func (c *cluster) forget(owners map[string]bool, seeds []string) {
	slices.Sort(seeds)
	c.mu.Lock()
	c.seeds = slices.Compact(seeds)
	var gone []*node
	for addr, n := range c.byAddr {
		if asked := n.asked.Load(); !owners[addr] && (asked == 0 || elapsed()-time.Duration(asked) > keepAsked) {
			gone = append(gone, n)
			delete(c.byAddr, addr)
		}
	}
	c.mu.Unlock()
	for _, n := range gone {
		for i := range c.slots {
			c.slots[i].CompareAndSwap(n, nil)
		}
		c.tasks.Go(n.close)
	}
}

func (c *cluster) close() {
	c.cancel()
	// A node that stands still takes a second, as does asking it for the slots.
	// One that becomes known only now is not connected, and the dialer is closed.
	var closing sync.WaitGroup
	closing.Go(c.tasks.Wait)
	for _, n := range c.nodes() {
		closing.Go(n.close)
	}
	closing.Wait()
}
