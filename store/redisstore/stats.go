package redisstore

import (
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/wire"
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

	// InFlight is the number of calls that wait for the node now. Outages is the
	// number of calls, since the store was made, that the node did not answer or
	// that were not sent to it.
	InFlight, Outages int64

	// Reasons holds Outages by reason, also for reasons that did not occur.
	Reasons map[store.Reason]int64
}

// Change is the start or the end of a time in which a node gets no calls.
type Change struct {
	Addr        string
	Unavailable bool // the start
	Gone        bool // the end, because the node has left its cluster

	// Err is why, at the start, and Reason the same in one word.
	Err    error
	Reason store.Reason

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
		all[i] = Node{
			Addr: n.Addr(), Unavailable: n.Unavailable(), Interruptions: n.Interruptions(), InFlight: n.InFlight(), Outages: n.Outages(), Reasons: n.Reasons(),
		}
	}
	return all
}

// changed passes a change on to tell.
func changed(tell func(Change)) func(wire.Change) {
	if tell == nil {
		return nil
	}
	return func(w wire.Change) {
		c := Change{Addr: w.Addr, Unavailable: w.Unavailable, Gone: w.Gone, Err: w.Err, Lasted: w.Lasted, Missed: w.Missed}
		if w.Err != nil {
			c.Reason = wire.ReasonOf(w.Err)
		}
		tell(c)
	}
}
