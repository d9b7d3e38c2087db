package grpcserver

import (
	"sync"
	"time"
)

// streams are the calls of a connection, as its frames tell: a call is open from its head
// until the end of its answer is written, or either side resets it. That is later than the
// end of its handler, if the client does not take the answer.
type streams struct {
	mu   sync.Mutex
	open []opened // guarded by mu; at most a little more than maxStreams
	last uint32   // the largest id so far; guarded by mu
}

// opened is an open call.
type opened struct {
	id    uint32
	since time.Time
}

// begin notes the head of a call. A second head of a call is its trailer.
func (s *streams) begin(id uint32, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id > s.last {
		s.last = id
		s.open = append(s.open, opened{id, now})
	}
}

// end notes the end of a call. It returns when the call began, or false if it was not open.
func (s *streams) end(id uint32) (since time.Time, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.open {
		if o.id == id {
			last := len(s.open) - 1
			s.open[i] = s.open[last]
			s.open = s.open[:last]
			return o.since, true
		}
	}
	return time.Time{}, false
}

func (s *streams) len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.open))
}

// idle reports whether a client has taken nothing of its answers for too long: messages
// that a call is sending, and answers of calls that have ended. The inbox is locked.
func (g *guest) idle(now time.Time) bool {
	written := g.written.Load()
	if !g.owes() || written != g.seen {
		g.seen, g.stuck = written, time.Time{}
		return false
	}
	if g.stuck.IsZero() {
		g.stuck = now
	}
	return now.Sub(g.stuck) >= taking
}

// owes reports whether there is something that the client should take.
func (g *guest) owes() bool { return g.sending.Load() > 0 || g.streams.len() > g.calls.Load() }

// taking is how long a client that has answers to take may take none.
const taking = 10 * time.Second

// SendMsg implements [grpc.ServerStream]. It waits until the client takes earlier messages,
// or until the connection is closed because it takes none.
func (s *counting) SendMsg(m any) error {
	s.guest.sending.Add(1)
	defer s.guest.sending.Add(-1)
	return s.ServerStream.SendMsg(m)
}

// Write implements [net.Conn].
func (c *incoming) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.scan(p[:n], func(f frame) {
		if f.kind == resetFrame || f.kind == headersFrame && f.flags&endStream != 0 {
			c.guest.streams.end(f.stream)
		}
		if f.kind == dataFrame || f.kind == headersFrame {
			c.guest.written.Add(1)
		}
	})
	return n, err
}
