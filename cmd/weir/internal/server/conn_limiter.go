package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
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

// connLimiter limits the connections of a listener. If there are too many, it closes a
// connection that waits for its client: one whose caller was never admitted, if
// there is any, and of those the one that has waited longest. If there is a grace, that is a
// connection of the client address with the most of them, and those that were accepted within the
// grace are spared, unless all others are in use. New connections have an eighth of the places for
// themselves: if admitted callers have more than the rest, it closes a connection of the callers who share
// the most, the one that has waited longest. If none waits, the new one is refused.
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

// mostGivenUp is how many requests of a connection with HTTP/2 the client may give up
// before they are answered. Beyond it the connection is closed, unless the client has
// waited for more than that. Requests that are given up at once cost a client nothing.
// It is well below maxStreams: net/http starts that many handlers, and closes a
// connection itself, a second later, when its client has given up four times as many.
const mostGivenUp = 64

// givenUp notes that the client has given up a request.
func (g *limitedConn) givenUp() {
	if n := g.given.Add(1); n > mostGivenUp && n > g.kept.Load() {
		g.limiter.waitsMu.Lock()
		defer g.limiter.waitsMu.Unlock()
		g.sendAway()
	}
}

// mostWaiting is how many requests of HTTP/2 may wait for their clients at the same time, over all
// connections of a listener: each takes some 20 KiB, and a connection can have a hundred. Beyond it
// a connection with some of them is closed.
const mostWaiting = 4096

// wait changes the number of requests of HTTP/2 that wait for the client.
func (g *limitedConn) wait(by int) {
	l := g.limiter
	l.waitsMu.Lock()
	defer l.waitsMu.Unlock()
	g.waits += by
	if g.sentAway.Load() {
		l.left += by
		return
	}
	if l.waits += by; l.waits > l.mostWaits {
		l.closeWaiting()
	}
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

// waiting returns how many requests of HTTP/2 of g wait for the client, unless it was sent away. It needs the limiter's waitsMu.
func (g *limitedConn) waiting() int64 {
	if g.sentAway.Load() {
		return 0
	}
	return int64(g.waits)
}

// closeWaiting closes a connection with requests that wait for the client, of the share that crowds: of callers who were never
// admitted the one that has waited longest, else the one with most of them. It needs waitsMu.
func (c *connLimiter) closeWaiting() {
	c.mu.Lock()
	crowd := c.crowding(int64(c.mostWaits), (*limitedConn).waiting)
	var first *limitedConn
	for g := range c.open {
		switch {
		case g.share != crowd || g.waiting() == 0:
		case first == nil, crowd == nil && g.since.Load() < first.since.Load(), crowd != nil && g.waits > first.waits:
			first = g
		}
	}
	c.mu.Unlock()
	if first != nil {
		first.sendAway()
	}
}

// sendAway closes g because of its requests. It needs the limiter's waitsMu.
func (g *limitedConn) sendAway() {
	if g.sentAway.CompareAndSwap(false, true) {
		g.limiter.waits -= g.waits
		g.limiter.left += g.waits
		g.limiter.shed()
		_ = g.Conn.Close() // its server notices
	}
}

// mostBeginning is how many requests of HTTP/2 may be in what was read from connections without an admitted caller, besides
// those that wait for their clients. Each gets a goroutine, which takes more memory than a thousand of its bytes.
const mostBeginning = 4096

// smallestRequest is about the least bytes of a request of HTTP/2.
const smallestRequest = 12

// patience is how long a connection without an admitted caller waits until its requests can begin. Then it is closed.
const patience = time.Second

var errCrowded = errors.New("too many requests of callers who were never admitted")

// begin waits until the requests in the n bytes that were read can begin. It reports whether they can: otherwise g is closed.
func (g *limitedConn) begin(n int) bool {
	const pause = 10 * time.Millisecond
	n = min(n/smallestRequest+1, maxStreams)
	l := g.limiter
	for range patience / pause {
		l.waitsMu.Lock()
		closed, fits := g.closed, l.waits+l.left+l.beginning+n <= l.mostWaits+mostBeginning
		if fits && !closed {
			l.beginning += n
			g.beginning.Store(int64(n))
		}
		l.waitsMu.Unlock()
		if fits || closed {
			return !closed
		}
		time.Sleep(pause)
	}
	l.shed()
	_ = g.Conn.Close() // its server notices
	return false
}

// begun notes that the requests in what was read have goroutines.
func (g *limitedConn) begun() {
	if g.beginning.Load() == 0 {
		return
	}
	runtime.Gosched() // they go first, and are counted as waiting, or have ended, by then
	g.limiter.waitsMu.Lock()
	g.limiter.beginning -= int(g.beginning.Swap(0))
	g.limiter.waitsMu.Unlock()
}

// turn is one request of a connection: its body, and its answer. From the end of the body to the
// beginning of the answer the connection is at work. Before and after that it waits for its client,
// which may send or read slowly.
type turn struct {
	http.ResponseWriter
	body   io.ReadCloser
	conn   *limitedConn
	stage  turnStage
	shared bool // the connection has other requests at the same time
}

type turnStage uint8

const (
	turnReceives turnStage = iota
	turnWorks
	turnAnswers
)

// mostUnread is more than the bytes of a body that net/http reads after the answer.
const mostUnread = 256<<10 + 1

// serve answers r by h.
func (t *turn) serve(g *limitedConn, h http.Handler, w http.ResponseWriter, r *http.Request) {
	t.ResponseWriter, t.body, t.conn, t.shared = w, r.Body, g, r.ProtoMajor > 1
	r.Body = t
	if head := sizeOfHead(r); g.limiter.incoming.most > 0 && (t.shared || head > smallHead) {
		g.hold(head, 1)
		defer g.hold(head, -1)
	}
	t.wait(1)
	defer t.wait(-1)
	defer t.answers()
	if r.ContentLength == 0 {
		// A client with HTTP/2 may announce an empty body, and not end it.
		_, _ = t.Read(nil)
	}
	h.ServeHTTP(t, r)
	if t.shared { // net/http would wait after this until the client takes a small answer
		t.answers()
		_ = http.NewResponseController(t.ResponseWriter).Flush()
	}
	if r.ProtoMajor == 1 && r.Header["Expect"] == nil {
		// net/http would read the rest of the body after this, when the head is not counted any more.
		_, _ = io.CopyN(io.Discard, t.body, mostUnread)
	}
}

// Read implements [io.Reader].
func (t *turn) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	t.conn.settle()
	if err != nil && t.stage == turnReceives {
		t.stage = turnWorks
		t.wait(-1)
		t.conn.work(1)
	}
	return n, err
}

// Close implements [io.Closer].
func (t *turn) Close() error { return t.body.Close() }

// Write implements [http.ResponseWriter].
func (t *turn) Write(p []byte) (int, error) {
	t.answers()
	return t.ResponseWriter.Write(p)
}

// WriteString implements [io.StringWriter].
func (t *turn) WriteString(s string) (int, error) {
	t.answers()
	return io.WriteString(t.ResponseWriter, s)
}

// WriteHeader implements [http.ResponseWriter].
func (t *turn) WriteHeader(status int) {
	t.answers()
	t.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (t *turn) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// answers notes that the answer begins or goes on, or that there is none. In a long answer with HTTP/2 the
// client acknowledges what it has read, by frames that belong to no other request.
func (t *turn) answers() {
	t.conn.settle()
	switch t.stage {
	case turnWorks:
		t.conn.work(-1)
		t.wait(1)
	case turnAnswers:
		t.conn.work(0)
	}
	t.stage = turnAnswers
}

// wait changes the number of requests that wait for the client. A connection that has one at a time
// has no need to be limited.
func (t *turn) wait(by int) {
	if t.shared {
		t.conn.wait(by)
	}
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
