package shortcut

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Config holds what a [Server] needs.
type Config struct {
	// Handler answers plain calls. It gets requests that it must not keep: their memory
	// is used again. Their context is never done. A [http.ResponseWriter] has no further
	// interfaces.
	Handler http.Handler

	// Rest is the server of connections with other calls. ErrorLog is for panics of
	// Handler.
	Rest     *http.Server
	ErrorLog *log.Logger

	// Working returns what marks a connection while it is at work, or nil. Nil: no
	// connection is marked.
	Working func(net.Conn) func(by int32)

	// Count is called with 1 for each connection, and with -1 when it has ended or was
	// passed on.
	Count func(by int64)

	// First is how long a client may take for its first bytes, Idle how long for the
	// next call, and Write how long for taking an answer.
	First, Idle, Write time.Duration
}

// Server serves connections. Make one with [New]. It is safe for concurrent use.
type Server struct {
	c       Config
	leaving atomic.Bool // each answer closes its connection
	ending  atomic.Bool // connections end behind their answer

	mu    sync.Mutex
	open  map[*conn]struct{} // guarded by mu
	group sync.WaitGroup     // the connections in open
}

// New returns a server. It serves nothing yet.
func New(c Config) *Server { return &Server{c: c, open: map[*conn]struct{}{}} }

// Serve serves the connections of l. It returns the error of the listener, as
// [http.Server.Serve] does.
func (s *Server) Serve(l net.Listener) error {
	for wait := time.Duration(0); ; {
		socket, err := l.Accept()
		if err != nil {
			// Most such errors pass, such as too many open files.
			var passing interface{ Temporary() bool }
			if s.leaving.Load() || !errors.As(err, &passing) || !passing.Temporary() {
				return err
			}
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			time.Sleep(wait)
			continue
		}
		wait = 0
		s.start(socket)
	}
}

// start serves a connection on a goroutine of its own.
func (s *Server) start(socket net.Conn) {
	c := s.newConn(socket)
	s.c.Count(1)
	s.mu.Lock()
	s.open[c] = struct{}{}
	s.group.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.group.Done()
		defer s.c.Count(-1)
		others := c.serve()
		s.mu.Lock()
		delete(s.open, c)
		s.mu.Unlock()
		if others {
			s.pass(c)
		} else {
			_ = socket.Close()
		}
	}()
}

// pass passes a connection on to the server of all other calls, whose deadlines begin
// now.
func (s *Server) pass(c *conn) {
	_ = c.socket.SetDeadline(time.Time{})
	one := &single{conn: &passed{Conn: c.socket, read: c.in}}
	_ = s.c.Rest.Serve(one) // the error of the second Accept, or of a server that is closed
	if one.conn != nil {
		_ = c.socket.Close()
	}
}

// Leave makes each answer close its connection.
func (s *Server) Leave() { s.leaving.Store(true) }

// Shutdown closes connections that wait for their clients, and waits until the others
// have ended. It returns the error of ctx if that ends before.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Leave()
	s.ending.Store(true)
	s.end(func(c *conn) bool { return c.phase.CompareAndSwap(idle, ended) })
	done := make(chan struct{})
	go func() { s.group.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes all connections at once.
func (s *Server) Close() {
	s.Leave()
	s.end(func(c *conn) bool { return true })
	s.group.Wait()
}

// end closes the connections for which which returns true.
func (s *Server) end(which func(*conn) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		if which(c) {
			_ = c.socket.Close()
		}
	}
}

// single is a listener with one connection.
type single struct{ conn net.Conn }

// Accept implements [net.Listener].
func (s *single) Accept() (net.Conn, error) {
	c := s.conn
	if s.conn = nil; c == nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close implements [net.Listener].
func (s *single) Close() error { return nil }

// Addr implements [net.Listener].
func (s *single) Addr() net.Addr { return nil }
