package server

import (
	"net"
	"testing"
)

// A connection that was removed from those that are open, and that still reads, costs no other connection its place.
func TestIncompleteRequestOfRemovedConnection(t *testing.T) {
	t.Parallel()
	sheds := 0
	c := newConnLimiter(nil, 10, false, func() { sheds++ })
	c.incoming.most = 64 << 10
	conn := func() *limitedConn {
		one, other := net.Pipe()
		t.Cleanup(func() { one.Close(); other.Close() })
		g := &limitedConn{Conn: one, limiter: c}
		c.addLocked(g, "")
		return g
	}
	bystander, removed := conn(), conn()
	bystander.arrive(10 << 10)
	c.removeLocked(removed)
	removed.arrive(60 << 10)
	if bystander.ended || !removed.ended || sheds != 1 || c.incoming.total != 10<<10 {
		t.Errorf("got ended %v and %v, %d closed, %d bytes, want the removed one closed alone", bystander.ended, removed.ended, sheds, c.incoming.total)
	}
	bystander.settle()
	if c.incoming.total != 0 {
		t.Errorf("got %d bytes after a request, want none", c.incoming.total)
	}
}
