package respapi

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// Config configures a [Server].
type Config struct {
	// Namespaces are the namespaces that the service serves.
	Namespaces *namespace.Set

	// Throttle returns a limiter for CL.THROTTLE in a namespace, which counts in the
	// store of the service. Shared reports whether a decision can wait for a network or a disk.
	Throttle func(namespace string, l weir.Limit) (*weir.Limiter, error)
	Shared   bool

	// Auth authenticates callers. Nil admits everyone. Resources limits concurrent work.
	// Nil has no limits.
	Auth      *access.Authenticator
	Resources *access.ResourceLimits

	// Working returns a function that marks a connection as busy, or nil. Unauthenticated
	// clients are never busy. Nil: no connection is marked.
	Working func(net.Conn) func(by int32)

	// Version is the version of the service.
	Version string

	// Patience is the time-out for one command, for reading replies and, if clients need a
	// token, for sending one. 0 means 10 seconds.
	Patience time.Duration
}

// Server serves connections. Make one with [New]. It is safe for concurrent use.
type Server struct {
	c        Config
	commands [len(specs)]commandCount
	protocol atomic.Int64 // protocol errors that ended a connection
	ids      atomic.Int64 // of connections

	life    context.Context // of the calls of all connections; done once the server is closed
	end     context.CancelFunc
	leaving atomic.Bool

	mu        sync.Mutex
	sockets   map[net.Listener]struct{}           // guarded by mu
	open      map[*conn]struct{}                  // guarded by mu
	throttles map[*namespace.Namespace]*throttles // guarded by mu
	group     sync.WaitGroup
}

// commandCount counts the calls of one command.
type commandCount struct{ calls, failed atomic.Int64 }

// New returns a server. It serves nothing yet.
func New(c Config) *Server {
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	life, end := context.WithCancel(context.Background())
	return &Server{
		c: c, life: life, end: end,
		sockets: map[net.Listener]struct{}{}, open: map[*conn]struct{}{}, throttles: map[*namespace.Namespace]*throttles{},
	}
}

// Serve serves the connections of l until the server is shut down or closed, and then
// returns nil.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.leaving.Load() {
		s.mu.Unlock()
		return l.Close()
	}
	s.sockets[l] = struct{}{}
	s.mu.Unlock()
	for wait := time.Duration(0); ; {
		socket, err := l.Accept()
		switch {
		case err == nil:
			wait = 0
		case s.leaving.Load() || errors.Is(err, net.ErrClosed):
			return nil
		default:
			// Most such errors are temporary, such as too many open files.
			var passing interface{ Temporary() bool }
			if !errors.As(err, &passing) || !passing.Temporary() {
				return err
			}
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			time.Sleep(wait)
			continue
		}
		c := s.newConn(socket)
		s.mu.Lock()
		if s.leaving.Load() {
			s.mu.Unlock()
			_ = socket.Close()
			continue
		}
		s.open[c] = struct{}{}
		s.group.Add(1)
		s.mu.Unlock()
		go c.serve()
	}
}

// grace is how long Shutdown waits for commands that are on their way.
const grace = 100 * time.Millisecond

// Shutdown accepts no more connections, decides the commands that have arrived, and ends
// the connections. It returns the error of ctx if that ends before.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.leave(func(c *conn) { _ = c.socket.SetReadDeadline(time.Now().Add(grace)) })
	ended := make(chan struct{})
	go func() { s.group.Wait(); close(ended) }()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// Close ends all connections at once, and cancels the calls that still wait for a store.
// Closing twice is safe.
func (s *Server) Close() error {
	s.end()
	err := s.leave(func(c *conn) {
		socket := c.socket
		if t, ok := socket.(interface{ NetConn() net.Conn }); ok {
			socket = t.NetConn() // TLS would wait until the client takes its alert
		}
		_ = socket.Close()
	})
	s.group.Wait()
	var all sync.WaitGroup
	for _, t := range s.throttles { // no connection uses them any more
		all.Go(t.close)
	}
	all.Wait()
	return err
}

// leave closes the listeners, and calls each for every connection.
func (s *Server) leave(each func(*conn)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving.Store(true)
	var err error
	for l := range s.sockets {
		err = errors.Join(err, l.Close())
		delete(s.sockets, l)
	}
	for c := range s.open {
		each(c)
	}
	return err
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	s.group.Done()
}

// Stats are numbers of a server, for metrics.
type Stats struct {
	Connections int
	Calls       map[string]int64 // by command
	Failed      map[string]int64 // calls that were answered with an error
	Protocol    int64            // connections that ended because of a protocol error
}

// Stats returns the numbers of s.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	st := Stats{Connections: len(s.open), Calls: map[string]int64{}, Failed: map[string]int64{}, Protocol: s.protocol.Load()}
	s.mu.Unlock()
	for i := range specs {
		st.Calls[specs[i].name], st.Failed[specs[i].name] = s.commands[i].calls.Load(), s.commands[i].failed.Load()
	}
	return st
}
