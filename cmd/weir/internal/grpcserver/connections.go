package grpcserver

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// connections are the open connections of a server. grpc-go keeps the parts of a message
// until it is complete, and an answer until its client takes it. It limits both for each
// stream, but not for all of them, and it has no time-outs for them. A connection therefore
// counts what it reads and subtracts what its calls have received, counts answers until grpc-go
// has written them, and counts the calls that were given up. It is closed if all connections
// together have too much and it has waited longest without an admitted caller, or has the most, if
// none of its messages or headers makes progress, or if most of its calls are given up by callers that
// may not make them.
//
// Closing alone does not help, because an abusive client opens another connection, and the goroutines
// of its calls have been started by then: the calls of others wait behind them. A connection is
// therefore read only as fast as its calls begin, and more slowly while it is abusive.
type connections struct {
	max  int64  // bytes of all connections; 0: no limit
	shed func() // is called for each connection that is closed; may be nil

	idle      atomic.Int64    // streams of health and reflection, except the first of each connection
	settingUp chan struct{}   // a semaphore for connections that are set up
	leaving   <-chan struct{} // is closed when the server shuts down

	total atomic.Int64
	mu    sync.Mutex
	open  map[*connection]struct{} // guarded by mu
}

const (
	// callBytes is about the memory of a call that waits for its message, or whose answer waits
	// for the client, with its goroutine and its headers.
	callBytes = 16 << 10

	// overhead is about the size of a message on the wire in addition to its bytes, in frames, and
	// headers is about the size of a call's headers.
	overhead = 64
	headers  = 512

	// little is what a connection may have without progress, apart from calls that wait for their
	// only message, because its other frames are counted as well.
	little = 64 << 10

	// ample is what a connection may have while closed ones have too much: a few calls.
	ample = 8 * callBytes

	// stalled is how long a connection may make no progress.
	stalled = 10 * time.Second

	// lateHeaders is how long the headers of a call may be incomplete.
	lateHeaders = 5 * time.Second

	// interval is how often connections are checked for that, and pings is how many bytes that
	// belong to no message may arrive in this time.
	interval = 2 * time.Second
	pings    = 256

	// hasty is the time within which an abusive client gives up a call. A client that has waited
	// longer may have had a deadline, which a slow store has missed.
	hasty = 5 * time.Millisecond

	// maxGivenUp is how many calls of a connection may be given up within hasty, by the client or
	// because of its wrong frames (CVE-2023-44487, CVE-2025-8671). Beyond it the connection is
	// closed, unless more of its calls were answered, because such calls cost a client nothing. A
	// service that was delayed may see the starts and the ends of maxStreams calls together.
	maxGivenUp = 2 * maxStreams

	// maxQueued is how many calls of a connection may wait for their goroutines to begin before the connection
	// is read again, and readBuffer is how many bytes are read at a time, which are more such calls. They are fewer
	// before a call was answered.
	maxQueued       = 32
	readBuffer      = 4 << 10
	firstReadBuffer = 512

	// maxSettingUp is how many connections are set up at the same time: until their first read, and after each of
	// setupReads, which get the preface of HTTP/2 or of TLS and what follows it. Each keeps its place for at most setup,
	// and not while it waits for its client.
	maxSettingUp = 16
	setup        = 10 * time.Millisecond
	setupReads   = 2

	// lenient is how many calls of a connection may be given up, in addition to as many as were answered,
	// before it is read more slowly: first after minDelay, then after four times as long each time, up to maxDelay.
	lenient  = 16
	minDelay = 100 * time.Millisecond
	maxDelay = 2 * time.Second

	// maxIdle is how many streams of health and reflection may be open, which need no token or can be idle
	// forever. The first of each connection is not counted, so that a client that fills the limit does not take
	// health checks away from others.
	maxIdle = 1000

	// linger is how long a connection stays open that is closed because of what its client does.
	linger = time.Second
)

// connection is a connection with its counts. It implements [credentials.AuthInfo], which gRPC passes
// from a connection to its calls, and [mem.BufferPool], to be called when an answer was written.
type connection struct {
	net.Conn
	credentials.CommonAuthInfo
	tlsInfo *credentials.TLSInfo // nil: without TLS
	work    func(by int32)       // may be nil
	all     *connections

	arriving atomic.Int64 // bytes of messages that are not complete
	received atomic.Int64 // when one was completed, or the first bytes of one arrived; in Unix nanoseconds
	unsent   atomic.Int64 // bytes of answers that are not written
	written  atomic.Int64 // when one was written, or the first one was to be sent; in Unix nanoseconds
	reads    atomic.Int64 // the number of reads
	seen     int64        // reads at the last check; guarded by all.mu
	calls    atomic.Int64 // in flight
	idle     atomic.Int64 // streams of health and reflection
	waiting  atomic.Int64 // calls that wait for their only message
	headers  atomic.Int64 // since when those of a call are incomplete, in Unix nanoseconds; 0: they are not
	closed   atomic.Bool

	caller atomic.Pointer[access.Holder] // the last one that was authorized, or nil

	givenUp, kept atomic.Int64 // calls that were given up at once, and those that were answered

	queued  atomic.Int64  // calls whose goroutines have not begun
	begun   chan struct{} // has a value when few are queued
	delay   time.Duration // before the last read
	lingers atomic.Bool   // it is closed after linger
	placed  atomic.Bool   // it has a place in settingUp
	done    chan struct{} // is closed with the connection
}

// AuthType implements [credentials.AuthInfo].
func (c *connection) AuthType() string {
	if c.tlsInfo != nil {
		return c.tlsInfo.AuthType()
	}
	return "insecure"
}

// Read implements [net.Conn].
func (c *connection) Read(p []byte) (int, error) {
	c.pace()
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	c.leaveSetup()
	if c.kept.Load() == 0 {
		p = p[:min(len(p), firstReadBuffer)]
	}
	n, err := c.Conn.Read(p)
	if n > 0 && c.reads.Load() < setupReads {
		c.enterSetup()
	}
	c.arrive(int64(n))
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// enterSetup waits for a place in settingUp.
func (c *connection) enterSetup() {
	select {
	case c.all.settingUp <- struct{}{}:
		c.placed.Store(true)
		time.AfterFunc(setup, c.leaveSetup) // an answer may wait for the client
	case <-c.done:
	}
}

// leaveSetup gives back the place in settingUp, if there is one.
func (c *connection) leaveSetup() {
	if c.placed.Swap(false) {
		<-c.all.settingUp
	}
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.leaveSetup()
	c.all.remove(c)
	if c.lingers.Load() {
		return nil
	}
	return c.Conn.Close()
}

// pace waits until the connection may be read again.
func (c *connection) pace() {
	for c.queued.Load() > maxQueued && c.wait(maxDelay, c.begun) {
	}
	if c.queued.Load() > maxQueued {
		c.queued.Store(0) // calls that gRPC itself refuses do not begin
	}
	if !c.isAbusive() {
		c.delay = 0
		return
	}
	c.delay = min(max(minDelay, 4*c.delay), maxDelay)
	if c.wait(c.delay, c.all.leaving) {
		c.all.close(c) // its client may be gone, behind what it has sent
	}
}

// wait waits for a value of early, at most for d and until c is closed. It reports whether there was one.
func (c *connection) wait(d time.Duration, early <-chan struct{}) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-early:
		return true
	case <-c.done:
	case <-late.C:
	}
	return false
}

// isAbusive reports whether the client of c gives up most of its calls, or has parts of messages while
// the connections have half of the memory that they may have.
func (c *connection) isAbusive() bool {
	return c.givenUp.Load() > c.kept.Load()+lenient ||
		c.all.max > 0 && c.all.total.Load() > c.all.max/2 && c.arriving.Load() > little
}

// mark calls the function of [Config.Working], if there is one. c may be nil.
func (c *connection) mark(by int32) {
	if c != nil && c.work != nil {
		c.work(by)
	}
}

// arrive counts n bytes that have arrived.
func (c *connection) arrive(n int64) {
	if n == 0 {
		return
	}
	c.reads.Add(1)
	if c.arriving.Add(n) == n {
		c.received.Store(time.Now().UnixNano())
	}
	c.all.add(c, n)
}

// receive counts n bytes of a message as received.
func (c *connection) receive(n int64) {
	c.all.subtract(&c.arriving, n)
	c.received.Store(time.Now().UnixNano())
}

// send counts an answer of n bytes.
func (c *connection) send(n int64) {
	n += callBytes
	if c.unsent.Add(n) == n {
		c.written.Store(time.Now().UnixNano())
	}
	c.all.add(c, n)
}

// Put implements [mem.BufferPool]: the answer in a buffer was written, or dropped.
func (c *connection) Put(b *[]byte) {
	c.all.subtract(&c.unsent, int64(len(*b))+callBytes)
	c.written.Store(time.Now().UnixNano())
	mem.DefaultBufferPool().Put(b)
}

// Get implements [mem.BufferPool].
func (*connection) Get(n int) *[]byte { return mem.DefaultBufferPool().Get(n) }

// begin counts a call, and end its end.
func (c *connection) begin() {
	c.calls.Add(1)
	if c.queued.Add(-1) == maxQueued {
		select {
		case c.begun <- struct{}{}:
		default:
		}
	}
	c.arrive(callBytes)
}

// end counts the end of a call that began at began. givenUp reports whether its client has given it
// up.
func (c *connection) end(began time.Time, givenUp bool) {
	switch {
	case !givenUp:
		c.kept.Add(1)
	case time.Since(began) < hasty:
		if n := c.givenUp.Add(1); n > maxGivenUp && n > c.kept.Load() {
			c.all.close(c)
		}
	}
	c.all.subtract(&c.arriving, headers)
	if c.calls.Add(-1) == 0 && c.closed.Load() {
		c.clear()
	}
}

// openIdle counts a stream of health or reflection on c, which closeIdle must end unless there is an error.
func (s *connections) openIdle(c *connection) error {
	if c.idle.Add(1) > 1 && s.idle.Add(1) > maxIdle {
		s.closeIdle(c)
		return errIdle
	}
	return nil
}

// closeIdle counts the end of a stream of health or reflection on c.
func (s *connections) closeIdle(c *connection) {
	if c.idle.Add(-1) > 0 {
		s.idle.Add(-1)
	}
}

// clear subtracts everything that c has counted.
func (c *connection) clear() { c.all.total.Add(-c.arriving.Swap(0) - c.unsent.Swap(0)) }

// size returns the bytes that c has.
func (c *connection) size() int64 { return c.arriving.Load() + c.unsent.Load() }

// isStalled reports whether the messages of c make no progress at now.
func (c *connection) isStalled(now time.Time) bool {
	return (c.waiting.Load() > 0 || c.arriving.Load() > little) && since(&c.received, now) > stalled ||
		c.unsent.Load() > 0 && since(&c.written, now) > stalled ||
		c.headers.Load() != 0 && since(&c.headers, now) > lateHeaders
}

// since returns the time from at, in Unix nanoseconds, to now.
func since(at *atomic.Int64, now time.Time) time.Duration {
	return time.Duration(now.UnixNano() - at.Load())
}

// waited returns the bytes of c, times the time for which they have made no progress at now.
func (c *connection) waited(now time.Time) float64 {
	return float64(c.arriving.Load())*float64(since(&c.received, now)) + float64(c.unsent.Load())*float64(since(&c.written, now))
}

// add counts n bytes of c, and closes a connection if there are too many in all.
func (s *connections) add(c *connection, n int64) {
	if total := s.total.Add(n); c.closed.Load() {
		if c.calls.Load() == 0 {
			c.clear()
		}
	} else if s.max > 0 && total > s.max {
		s.relieve()
	}
}

// subtract subtracts n bytes from one of the numbers of a connection, or fewer if it has
// fewer.
func (s *connections) subtract(from *atomic.Int64, n int64) {
	for {
		was := from.Load()
		by := min(n, was)
		if by <= 0 {
			return
		}
		if from.CompareAndSwap(was, was-by) {
			s.total.Add(-by)
			return
		}
	}
}

// relieve closes a connection: of the callers who share the most bytes, the one with most or, if those without an admitted
// caller have more than an eighth of what all may have, the one of these whose bytes have waited longest. If closed connections
// have the excess, until their calls have ended, it closes only a connection with more than a few calls,
// because others are not responsible.
func (s *connections) relieve() {
	type share struct {
		largest   *connection
		most, sum int64
	}
	var oldest, largest *connection
	var sum, most, unadmitted int64
	var longest float64
	shares := map[string]share{}
	now := time.Now()
	s.mu.Lock()
	for c := range s.open {
		n := c.size()
		sum += n
		if caller := c.caller.Load(); caller != nil {
			name := caller.Share()
			of := shares[name]
			if of.sum += n; n > of.most {
				of.largest, of.most = c, n
			}
			shares[name] = of
			continue
		}
		unadmitted += n
		if w := c.waited(now); n > 0 && (oldest == nil || w > longest) {
			oldest, longest = c, w
		}
	}
	s.mu.Unlock()
	for _, of := range shares {
		if of.sum > most {
			largest, most = of.largest, of.sum
		}
	}
	worst := largest
	if unadmitted > s.max/8 {
		worst = oldest
	}
	if worst != nil && (sum > s.max || worst.size() > ample) {
		s.close(worst)
	}
}

// closeStalled closes the connections that are stalled at now.
func (s *connections) closeStalled(now time.Time) {
	var all []*connection
	s.mu.Lock()
	for c := range s.open {
		s.settleLocked(c)
		if c.isStalled(now) {
			all = append(all, c)
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		s.close(c)
	}
}

// settleLocked subtracts bytes that belong to no message. For a connection without calls these are all its
// bytes, some time after its last read, because calls that have arrived have begun by then. Those of incomplete
// headers stay.
func (s *connections) settleLocked(c *connection) {
	if c.headers.Load() != 0 {
		return
	}
	n := int64(pings)
	if reads := c.reads.Load(); reads != c.seen {
		c.seen = reads
	} else if c.calls.Load() == 0 {
		n = c.arriving.Load()
	}
	s.subtract(&c.arriving, n)
}

// watch calls closeStalled every interval, until ctx is done.
func (s *connections) watch(ctx context.Context) {
	tick := time.Tick(interval)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick:
			s.closeStalled(now)
		}
	}
}

// close closes c because of what its client does. The client is told after a while, because otherwise it would
// open the next connection at once.
func (s *connections) close(c *connection) {
	if c.closed.Swap(true) {
		return
	}
	if s.shed != nil {
		s.shed()
	}
	c.lingers.Store(true)
	time.AfterFunc(linger, func() { _ = c.Conn.Close() })
	s.remove(c)
	_ = c.SetDeadline(time.Unix(1, 0)) // its transport gets an error
}

// remove removes c, which is closed.
func (s *connections) remove(c *connection) {
	s.mu.Lock()
	if _, ok := s.open[c]; ok {
		delete(s.open, c)
		close(c.done)
	}
	s.mu.Unlock()
	c.closed.Store(true)
	if c.calls.Load() == 0 { // otherwise its memory is in use until the last of them ends
		c.clear()
	}
}

// listener is a listener whose connections are those of a server.
type listener struct {
	net.Listener
	all *connections
}

// Accept implements [net.Listener].
func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, all: l.all, begun: make(chan struct{}, 1), done: make(chan struct{})}
	c.enterSetup() // until its goroutine reads
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.all.open == nil {
		l.all.open = map[*connection]struct{}{}
	}
	l.all.open[c] = struct{}{}
	return c, nil
}

// transportCredentials passes each [connection] to its calls, with TLS or without.
type transportCredentials struct {
	credentials.TransportCredentials
	working func(net.Conn) func(by int32) // may be nil
}

// newCredentials returns the credentials of a server.
func newCredentials(c Config) credentials.TransportCredentials {
	t := transportCredentials{insecure.NewCredentials(), c.Working}
	if c.Certs != nil {
		t.TransportCredentials = credentials.NewTLS(c.Certs.Config("h2"))
	}
	return t
}

// ServerHandshake implements [credentials.TransportCredentials].
func (t transportCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := t.TransportCredentials.ServerHandshake(raw)
	c, ok := raw.(*connection)
	if err != nil || !ok {
		return conn, info, err
	}
	c.SecurityLevel = credentials.NoSecurity
	if t.working != nil {
		c.work = t.working(c.Conn)
	}
	if i, ok := info.(credentials.TLSInfo); ok {
		c.tlsInfo, c.SecurityLevel = &i, i.SecurityLevel
	}
	return &framed{Conn: conn, conn: c, left: len(preface)}, c, nil
}

// Clone implements [credentials.TransportCredentials].
func (t transportCredentials) Clone() credentials.TransportCredentials {
	return transportCredentials{t.TransportCredentials.Clone(), t.working}
}

// tlsState returns the state of TLS of c, or nil.
func (c *connection) tlsState() *tls.ConnectionState {
	if c.tlsInfo == nil {
		return nil
	}
	return &c.tlsInfo.State
}
