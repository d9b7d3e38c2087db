package wire

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

// ask makes the goroutine in watch ask for the slots soon.
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
		_ = c.refresh(c.ctx) // it is called again as long as calls fail
		// A cluster that is in trouble is not asked without a break.
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(breakFor):
		}
	}
}

// refresh asks one node after the other who serves which slots, until one
// answers. It begins with the nodes that are available.
func (c *cluster) refresh(ctx context.Context) error {
	all := c.Nodes()
	err := errNoSlots
	for _, suspect := range []bool{false, true} {
		for _, n := range all {
			client := n.client()
			if client == nil || n.breaker.open() != suspect {
				continue
			}
			if err = c.learn(ctx, n.addr, client.Client); err == nil {
				return nil
			}
		}
	}
	c.mu.Lock()
	seeds := slices.Clone(c.seeds)
	c.mu.Unlock()
	for _, addr := range seeds {
		if slices.ContainsFunc(all, func(n *Node) bool { return n.addr == addr }) {
			continue
		}
		client, failed := c.config.connection(addr, c.dialer, true, nothing)
		if failed != nil {
			err = fmt.Errorf("%s: %w", addr, failed)
			continue
		}
		err = c.learn(ctx, addr, client.Client)
		client.Close()
		if err == nil {
			return nil
		}
	}
	return err
}

// learn asks the node at addr who serves which slots. Nodes that are new get
// their slots when they have connections, or cannot be reached.
func (c *cluster) learn(ctx context.Context, addr string, client rueidis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	ranges, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return fmt.Errorf("%s: %w", addr, err)
	}
	owners, seeds := map[string]bool{}, slices.Clone(c.config.Addrs)
	var found []owned
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
			host, _ := at[0].ToString() // empty means the node's own
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
			found = append(found, owned{c.node(there), from, to})
		}
	}
	if len(owners) == 0 {
		return fmt.Errorf("%s: %w", addr, errNoSlots)
	}
	for _, o := range found {
		o.node.manager.await(ctx)
		for slot := o.from; slot <= o.to; slot++ {
			c.slots[slot].Store(o.node)
		}
	}
	c.forget(owners, seeds)
	return nil
}

// owned is a range of slots and the node that serves it.
type owned struct {
	node     *Node
	from, to int64
}

// keepAsked is how long the store keeps a node that serves nothing yet, for the
// slots that are on their way to it.
const keepAsked = time.Minute

// forget drops the nodes that serve nothing any more.
func (c *cluster) forget(owners map[string]bool, seeds []string) {
	slices.Sort(seeds)
	c.mu.Lock()
	c.seeds = slices.Compact(seeds)
	var gone []*Node
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
		c.tasks.Go(n.goes)
	}
}

// refreshEvery is how often the store asks a cluster who serves which slots, even
// when nothing seems to have changed.
const refreshEvery = 5 * time.Second
