package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/internal/clientaddr"
)

// newcomerGrace is how long a new connection of the admin address is spared. Probes come on new
// connections, and send their requests at once.
const newcomerGrace = time.Second

// inUse is how long after its last answer, or a part of it, a connection counts as used. It is longer than a stream is silent.
const inUse = 20 * time.Second

// connLimiter limits the connections of a listener. If there are too many, it closes one that waits for its client, or
// refuses the new one if none waits. It closes, of several the one that has waited longest:
//
//   - If admitted callers have more than seven eighths of the places, because new connections need the rest: one of the
//     callers who share the most.
//   - Otherwise: one whose caller was never admitted, if there is any. If there is a grace, it is one of the client address
//     with the most connections, and one that was accepted within the grace only if all others are in use.
type connLimiter struct {
	net.Listener
	most    int           // 0: no limit
	refusal string        // the answer to a connection that is refused; empty: none
	shed    func()        // is called for each connection that is refused or closed
	grace   time.Duration // set before the first connection

	began time.Time // time since it takes half as long to read as the time of day

	refusing chan struct{} // a semaphore for refusals in flight

	mu       sync.Mutex
	open     map[*limitedConn]struct{} // guarded by mu
	from     map[string]*int           // the number of connections by address, if there is a grace; guarded by mu
	shares   map[string]*share         // by name; guarded by mu
	admitted int                       // connections in shares; guarded by mu

	mostWaits int        // set before the first connection
	waitsMu   sync.Mutex // locked before mu
	waits     int        // requests of HTTP/2 that wait for their clients; guarded by waitsMu
	left      int        // those on connections that were sent away, which have yet to end; guarded by waitsMu
	beginning int        // requests that were read and may not have begun, at most; guarded by waitsMu; see begin

	incoming incoming // its mu is locked before mu
}

// share counts the connections of callers that share their part of the service, of whom there is one at least.
type share struct {
	name  string
	conns int // guarded by the limiter's mu
}

// size returns how many connections s has: 0 if it is nil. It needs the limiter's mu.
func (s *share) size() int {
	if s == nil {
		return 0
	}
	return s.conns
}

// newConnLimiter returns a listener that has at most most connections of l at a time, or any number if most is 0.
// refusal is the answer to a connection that is refused; it may be empty.
func newConnLimiter(l net.Listener, most int, refusal string, shed func()) *connLimiter {
	began := time.Now()
	c := &connLimiter{
		Listener: l, most: most, refusal: refusal, shed: shed, began: began, refusing: make(chan struct{}, 64),
		open: map[*limitedConn]struct{}{}, from: map[string]*int{}, shares: map[string]*share{}, mostWaits: mostWaiting,
	}
	c.incoming.now = func() time.Duration { return time.Since(began) }
	return c
}

// Accept implements [net.Listener].
func (c *connLimiter) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g := &limitedConn{Conn: conn, limiter: c, accepted: int64(time.Since(c.began))}
		g.since.Store(g.accepted)
		if c.admit(g) {
			return g, nil
		}
		c.shed()
		c.refuse(conn)
	}
}

// admit adds g, and closes another connection if there are too many. It reports
// false when all others are at work.
func (c *connLimiter) admit(g *limitedConn) bool {
	address := ""
	if c.grace > 0 {
		address = addressOf(g.Conn)
	}
	c.mu.Lock()
	c.addLocked(g, address)
	var oldest *limitedConn
	if c.most > 0 && len(c.open) > c.most {
		crowded := c.admitted > c.most-c.most/8
		for other := range c.open {
			if other != g && other.working.Load() == 0 && (oldest == nil || other.before(oldest, g.accepted, crowded)) {
				oldest = other
			}
		}
		if oldest == nil {
			c.removeLocked(g)
			c.mu.Unlock()
			return false
		}
		c.removeLocked(oldest)
	}
	c.mu.Unlock()
	if oldest != nil {
		c.shed()
		_ = oldest.Conn.Close() // its server notices
	}
	return true
}

// addLocked adds g, whose client has this address.
func (c *connLimiter) addLocked(g *limitedConn, address string) {
	c.open[g] = struct{}{}
	if g.address, g.peers = address, c.from[address]; g.peers == nil {
		g.peers = new(int)
		c.from[address] = g.peers
	}
	*g.peers++
}

// removeLocked removes g, if it was not removed before.
func (c *connLimiter) removeLocked(g *limitedConn) {
	if _, ok := c.open[g]; !ok {
		return
	}
	delete(c.open, g)
	c.leaveLocked(g)
	if *g.peers--; *g.peers == 0 {
		delete(c.from, g.address)
	}
}

// leaveLocked takes g out of its share, if it has one.
func (c *connLimiter) leaveLocked(g *limitedConn) {
	if g.share == nil {
		return
	}
	c.admitted--
	if g.share.conns--; g.share.conns == 0 {
		delete(c.shares, g.share.name)
	}
}

// addressOf returns the address of the client of conn, without its port; for IPv6, that of its /64.
func addressOf(conn net.Conn) string {
	group, _ := clientaddr.PeerGroup(conn.RemoteAddr().String())
	return group // empty for a Unix socket
}

// refusal503 is the answer of most listeners to a connection that is refused.
const refusal503 = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// refuse closes conn. If there is time, it reads first what the client has sent:
// otherwise the client might not see the answer.
func (c *connLimiter) refuse(conn net.Conn) {
	if c.refusal != "" {
		select {
		case c.refusing <- struct{}{}:
			go func() {
				defer func() { <-c.refusing }()
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Second))
				_, _ = io.WriteString(conn, c.refusal)
				if half, ok := conn.(interface{ CloseWrite() error }); ok {
					_ = half.CloseWrite()
				}
				_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1<<20))
			}()
			return
		default: // there are too many, even for that
		}
	}
	_ = conn.Close()
}

// limitedConn is a connection of a connLimiter.
type limitedConn struct {
	net.Conn
	limiter  *connLimiter
	accepted int64                         // when, in nanoseconds since the limiter began
	working  atomic.Int32                  // requests that are being decided
	caller   atomic.Pointer[access.Holder] // the last one that was admitted: refused calls and health checks do not count
	since    atomic.Int64                  // when it was accepted, or an answer began or went on, as accepted
	turn     turn                          // of the request, with HTTP/1
	secure   *tls.Conn                     // on top of it, or nil

	address string // of the client, if the limiter has a grace
	peers   *int   // the number of connections with that address; guarded by the limiter's mu
	share   *share // of the caller, or nil; guarded by the limiter's mu

	// Requests of HTTP/2 that the client waited for, and those that it gave up.
	kept, given atomic.Int64
	sentAway    atomic.Bool // it was closed because of these, or of the next

	waits     int          // requests of HTTP/2 that wait for the client; guarded by the limiter's waitsMu
	preface   int          // how many bytes of the preface of HTTP/2 have arrived; negative: it is another protocol. Used by Read only
	beginning atomic.Int64 // its part of that of the limiter; only changed with waitsMu
	closed    bool         // it begins no more; guarded by the limiter's waitsMu

	arrived atomic.Int64 // bytes that belong to no request
	counted int64        // those that are in the total of all connections; guarded by the mu of incoming
	held    int64        // those of the heads of requests, in the same total; guarded by the mu of incoming
	ended   bool         // none are counted any more; guarded by the mu of incoming

	// progress is when the first of these bytes came, or when a request last began or ended. It is guarded by the mu of incoming.
	progress time.Duration
}

// Close implements [net.Conn].
func (g *limitedConn) Close() error {
	g.limiter.waitsMu.Lock()
	g.closed = true
	g.limiter.waitsMu.Unlock()
	g.begun()
	g.limiter.incoming.mu.Lock()
	g.endIncoming()
	g.limiter.incoming.mu.Unlock()
	g.limiter.mu.Lock()
	g.limiter.removeLocked(g)
	g.limiter.mu.Unlock()
	return g.Conn.Close()
}

// CloseWrite shuts down the writing side, as net/http does before it closes.
func (g *limitedConn) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// before reports whether g is closed before other at now. crowded means that admitted callers have too many connections. It
// needs the limiter's mu.
func (g *limitedConn) before(other *limitedConn, now int64, crowded bool) bool {
	older := cmp.Compare(g.since.Load(), other.since.Load())
	if crowded {
		return cmp.Or(cmp.Compare(other.share.size(), g.share.size()), older) < 0
	}
	return cmp.Or(cmp.Compare(*other.peers, *g.peers), cmp.Compare(g.rank(now), other.rank(now)), older) < 0
}

// rank returns which connections of one address are closed first: those whose callers were never admitted (0), those
// that are not in use (1), those within the grace (2), and those that are in use (3).
func (g *limitedConn) rank(now int64) int {
	switch {
	case g.accepted > now-int64(g.limiter.grace):
		return 2
	case g.share == nil:
		return 0
	case g.since.Load() < now-int64(inUse):
		return 1
	}
	return 3
}

// Admit implements [access.Conn].
func (g *limitedConn) Admit(caller *access.Holder) {
	if g.caller.Load() == caller {
		return
	}
	c, name := g.limiter, caller.Share()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.open[g]; !ok {
		return
	}
	c.leaveLocked(g)
	if g.share = c.shares[name]; g.share == nil {
		g.share = &share{name: name}
		c.shares[name] = g.share
	}
	g.share.conns++
	c.admitted++
	g.caller.Store(caller)
}

// work changes the number of requests that are being decided, see [turn], or notes that an answer goes on, if by is 0.
// It does not read the clock when one begins: as long as there are some, nobody asks since when.
func (g *limitedConn) work(by int32) {
	if by > 0 {
		g.settle()
	} else {
		g.since.Store(int64(time.Since(g.limiter.began)))
	}
	g.working.Add(by)
}

// crowding returns the share of callers who have most of what size counts: nil, that of all who were never admitted, if they
// have more than an eighth of most. So a new connection makes no room for what others hold. It needs mu.
func (c *connLimiter) crowding(most int64, size func(*limitedConn) int64) (crowd *share) {
	of := map[*share]int64{}
	for g := range c.open {
		of[g.share] += size(g)
	}
	if of[nil] > most/8 {
		return nil
	}
	for s, n := range of {
		if n > of[crowd] {
			crowd = s
		}
	}
	return crowd
}

// withLimitedConn returns ctx with the limitedConn below c, if there is one, which gets to know the TLS connection between
// them.
func withLimitedConn(ctx context.Context, c net.Conn) context.Context {
	var secure *tls.Conn
	for c != nil {
		switch below := c.(type) {
		case *tls.Conn:
			secure, c = below, below.NetConn()
		case *limitedConn:
			below.secure = secure
			return context.WithValue(ctx, access.ConnKey{}, below)
		case interface{ NetConn() net.Conn }:
			c = below.NetConn()
		default:
			return ctx
		}
	}
	return ctx
}
