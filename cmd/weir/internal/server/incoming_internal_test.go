package server

import (
	"net"
	"testing"
	"time"
)

// What has waited longest makes room, so that strangers with parts of heads keep nobody away who sends a head, or a body, at once.
func TestStrangersMakeRoom(t *testing.T) {
	t.Parallel()
	sheds, now := 0, time.Duration(0)
	l := newConnLimiter(nil, 0, "", func() { sheds++ })
	l.incoming.most, l.incoming.now = 100<<10, func() time.Duration { return now }
	connect := func(n int64) *limitedConn {
		near, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		g := &limitedConn{Conn: near, limiter: l}
		l.admit(g)
		g.arrive(n)
		return g
	}
	for range 48 {
		connect(2100)
		now += time.Millisecond
	}
	honest := connect(1000) // an idle connection
	now += time.Minute
	for range 10 {
		honest.arrive(60 << 10)
		if honest.ended {
			t.Fatal("the client that sends all at once was closed")
		}
		honest.settle()
		honest.hold(30<<10, 1)
		now += time.Millisecond
		honest.hold(30<<10, -1)
		connect(2100)
		now += time.Second
	}
	if sheds < 20 || l.incoming.total > l.incoming.most {
		t.Errorf("got %d strangers closed, and %d bytes", sheds, l.incoming.total)
	}
}
