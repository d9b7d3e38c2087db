package redisstore

import (
	"time"

	"github.com/weirhq/weir/store"
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

// Change is the start or the end of a time in which a node gets no calls.
type Change struct {
	Addr string
	Err  *store.OutageError // at the start: why; nil at the end
	Gone bool               // the end, because the node has left its cluster

	// Lasted is the time since the start, and Missed the number of outages since
	// then. Both are set at the end.
	Lasted time.Duration
	Missed int64
}

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
