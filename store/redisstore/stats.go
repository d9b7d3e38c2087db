package redisstore

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/window"
)

// Node are the numbers of one server, or of the primary that Sentinels name.
type Node struct {
	// Addr is its address, or the primary's name.
	Addr string

	// CutOff says that it has not answered lately and is asked only now and
	// then, or that it is not known yet.
	CutOff bool

	// InFlight are the calls that wait for it now, Outages those that it has
	// not answered, or was not asked, since the store was made.
	InFlight, Outages int64
}

// Nodes are the numbers of the nodes in use, by address. On a cluster there are
// none until one of its nodes was reached.
func (s *Store) Nodes() []Node {
	nodes := s.servers.nodes()
	all := make([]Node, len(nodes))
	for i, n := range nodes {
		all[i] = Node{
			Addr:     n.addr,
			CutOff:   n.breaker.open() || n.client.Load() == nil,
			InFlight: n.inFlight.Load(),
			Outages:  n.outages.Load(),
		}
	}
	return all
}

// Probe asks the nodes that are cut off whether they answer again, as calls do
// that come by. It is for a store that nobody calls because it is out of reach.
func (s *Store) Probe(ctx context.Context) {
	for _, n := range s.servers.nodes() {
		if !n.breaker.open() || s.closed.Load() {
			continue
		}
		within, cancel := s.within(ctx)
		_, _ = n.guard(within, func(c rueidis.Client) (window.Instant, error) {
			return 0, n.askTime(within, c)
		})
		cancel()
	}
}

// Location is where the store is, as a URL without secrets.
func (s *Store) Location() string { return s.config.String() }
