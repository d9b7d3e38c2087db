package redisstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
)

// Node holds the numbers of one server. The primary behind Sentinels is one Node,
// whichever server it is.
type Node struct {
	// Addr is the address of the server, or the Sentinels' name of the primary.
	Addr string

	// Unavailable is true while the node gets no calls, because it has not answered
	// lately or there is no connection. Interruptions is how often that began.
	Unavailable   bool
	Interruptions int64

	// InFlight is the number of calls that wait for the node now.
	InFlight int64

	// Outages is the number of calls, since the store was made, that the node did not
	// answer or that were not sent to it, by reason. It has all reasons, also those
	// that did not occur.
	Outages map[store.Reason]int64
}

// Change is the start or the end of a time in which a node gets no calls: at the start Err
// says why, and at the end Err is nil. Gone says that it ended because the node has left its
// cluster, Lasted how long it took, and Missed how many outages there were.
type Change = conn.Change

// Nodes returns the numbers of the nodes in use, by address. On a cluster there
// are none until one of its nodes was reached.
func (s *Store) Nodes() []Node {
	nodes := s.servers.Nodes()
	all := make([]Node, len(nodes))
	for i, n := range nodes {
		all[i] = Node(n.Stats())
	}
	return all
}
