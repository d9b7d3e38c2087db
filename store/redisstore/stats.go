package redisstore

import "github.com/weirhq/weir/store/remote"

// Node holds the numbers of one server. The primary behind Sentinels is one Node,
// whichever server it is.
type Node = remote.Node

// Change is the start or the end of a time in which a node gets no calls.
type Change = remote.Change

// Nodes returns the numbers of the nodes in use, by address. On a cluster there
// are none until one of its nodes was reached.
func (s *Store) Nodes() []Node {
	nodes := s.servers.Nodes()
	all := make([]Node, len(nodes))
	for i, n := range nodes {
		all[i] = n.Node()
	}
	return all
}
