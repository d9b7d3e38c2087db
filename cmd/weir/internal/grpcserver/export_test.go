package grpcserver

import "time"

// Arriving returns the bytes of messages that are not complete.
func (s *Server) Arriving() int64 { return s.inbox.total.Load() }

// Late closes the connections that are late at now.
func (s *Server) Late(now time.Time) { s.inbox.late(now) }

// Guests returns the number of connections.
func (s *Server) Guests() int {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	return len(s.inbox.open)
}
