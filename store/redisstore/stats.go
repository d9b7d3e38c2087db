package redisstore

import (
	"context"

	"github.com/weirhq/weir/store"
)

// Node holds the numbers of one server, or of the primary that Sentinels name.
type Node struct {
	// Addr is the server's address, or the primary's name.
	Addr string

	// CutOff is true while the node gets only a trial call now and then, because
	// it has not answered lately or is not known yet.
	CutOff bool

	// InFlight is the number of calls that wait for the node now. Outages is the
	// number of calls since the store was made that it did not answer, or that
	// were not sent to it.
	InFlight, Outages int64

	// Reasons is Outages by reason. It has the reasons that occurred.
	Reasons map[store.Reason]int64
}

// Nodes returns the numbers of the nodes in use, by address. On a cluster there
// are none until one of its nodes was reached.
func (s *Store) Nodes() []Node {
	nodes := s.servers.Nodes()
	all := make([]Node, len(nodes))
	for i, n := range nodes {
		all[i] = Node{
			Addr: n.Addr(), CutOff: n.CutOff(), InFlight: n.InFlight(), Outages: n.Outages(), Reasons: n.Reasons(),
		}
	}
	return all
}

// Probe sends a trial call to the nodes that are cut off, as calls to the store
// do. It is for a store without calls because it is out of reach.
func (s *Store) Probe(ctx context.Context) {
	for _, n := range s.servers.Nodes() {
		if s.closed.Load() {
			return
		}
		within, cancel := s.timer.Within(ctx, s.config.Timeout)
		n.Probe(within)
		cancel()
	}
}

// Location returns where the store is, as a URL without secrets.
func (s *Store) Location() string { return s.config.String() }
