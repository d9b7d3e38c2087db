package grpcserver

import "time"

// Arriving returns the bytes of messages that are not complete.
func (s *Server) Arriving() (n int64) { return s.count((*connection).size) }

// CloseStalled closes the connections that are stalled at now.
func (s *Server) CloseStalled(now time.Time) { s.conns.closeStalled(now) }

// Connections returns the number of connections.
func (s *Server) Connections() int64 { return s.count(func(*connection) int64 { return 1 }) }

func (s *Server) count(of func(*connection) int64) (n int64) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for c := range s.conns.open {
		n += of(c)
	}
	return n
}
