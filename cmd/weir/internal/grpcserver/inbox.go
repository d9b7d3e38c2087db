package grpcserver

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// inbox bounds the memory of messages that are still arriving. gRPC keeps the parts of a
// message until it is complete, and has neither a bound nor a time-out for that. So a
// connection counts the data that it reads, and each message that a call receives is
// taken off again. If there is too much in all, the connection with the most of it is
// closed. A connection that keeps a call waiting for its message, or has more than a
// little data, and completes no message for too long, is closed, too, and so is one whose
// client takes no answers, or gives up most of its calls at once.
//
// A call that ends before it has received its message leaves the bytes of it, because a
// handler cannot tell which they were. They stay until its connection has no calls.
//
// A zero inbox has no bound.
type inbox struct {
	most int64  // bytes of all connections; 0: no bound
	shed func() // is called for each connection that is closed; may be nil

	total atomic.Int64
	mu    sync.Mutex
	open  map[*guest]struct{} // guarded by mu
}

const (
	// waiting is what a call that waits for its message takes, about: with its
	// goroutine and its headers.
	waiting = 16 << 10

	// little is what calls that ended without their messages may leave.
	little = 64 << 10

	// ample is what a connection may have while closed ones have too much: a few calls.
	ample = 8 * waiting

	// receiving is how long a connection with parts of messages may complete none.
	receiving = 10 * time.Second

	// patrol is how often connections are looked at for that.
	patrol = 2 * time.Second
)

// enter adds g.
func (b *inbox) enter(g *guest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = map[*guest]struct{}{}
	}
	b.open[g] = struct{}{}
}

// leave removes g.
func (b *inbox) leave(g *guest) {
	b.mu.Lock()
	delete(b.open, g)
	b.mu.Unlock()
	g.gone.Store(true)
	if g.calls.Load() == 0 { // otherwise the last of them has its memory until it ends
		g.clear()
	}
}

// relieve closes the connection with the most data. If closed connections have what is too
// much, until their calls have ended, it closes only a connection that has more than a few
// calls: others are not to blame.
func (b *inbox) relieve() {
	var worst *guest
	var most, sum int64
	b.mu.Lock()
	for g := range b.open {
		n := g.pending.Load()
		if sum += n; n > most {
			worst, most = g, n
		}
	}
	b.mu.Unlock()
	if worst != nil && (sum > b.most || most > ample) {
		b.end(worst)
	}
}

// late closes the connections that have completed no message, or taken no answer, for too
// long.
func (b *inbox) late(now time.Time) {
	var all []*guest
	b.mu.Lock()
	for g := range b.open {
		late := (g.expected.Load() > 0 || g.pending.Load() > little) && now.UnixNano()-g.progress.Load() > int64(receiving)
		if g.idle(now) || late {
			all = append(all, g)
		}
	}
	b.mu.Unlock()
	for _, g := range all {
		b.end(g)
	}
}

// end closes the connection of g.
func (b *inbox) end(g *guest) {
	if g.gone.CompareAndSwap(false, true) && b.shed != nil { // once, although it leaves later
		b.shed()
	}
	_ = g.conn.Close() // its transport notices
	b.leave(g)
}

// watch calls late from time to time, until ctx is done.
func (b *inbox) watch(ctx context.Context) {
	tick := time.NewTicker(patrol)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			b.late(now)
		}
	}
}

// add notes n bytes that have come for g.
func (g *guest) add(n int64) {
	b := g.inbox
	if b == nil || n == 0 {
		return
	}
	if g.pending.Add(n) == n {
		g.progress.Store(time.Now().UnixNano())
	}
	if total := b.total.Add(n); g.gone.Load() {
		if g.calls.Load() == 0 {
			g.clear()
		}
	} else if b.most > 0 && total > b.most {
		b.relieve()
	}
}

// take takes n bytes off again, or fewer if there are fewer.
func (g *guest) take(n int64) {
	for {
		was := g.pending.Load()
		by := min(n, was)
		if by <= 0 {
			return
		}
		if g.pending.CompareAndSwap(was, was-by) {
			g.inbox.total.Add(-by)
			return
		}
	}
}

const (
	// hasty is how soon a client gives up calls that it did not want. One that has waited
	// as long may have a deadline, which a slow store has not met.
	hasty = 5 * time.Millisecond

	// mostGivenUp is how many calls of a connection the client may give up as soon as
	// that. Beyond it the connection is closed, unless more of its calls were answered.
	// Such calls cost a client nothing. If the service itself has been held up, it may
	// see the beginnings and the ends of maxStreams calls together.
	mostGivenUp = 2 * maxStreams
)

// reset notes that the client has given up a call that began at since.
func (g *guest) reset(since, now time.Time) {
	if now.Sub(since) >= hasty {
		return
	}
	if n := g.given.Add(1); n > mostGivenUp && n > g.kept.Load() && !g.gone.Load() {
		g.inbox.end(g)
	}
}

// clear takes off all.
func (g *guest) clear() { g.inbox.total.Add(-g.pending.Swap(0)) }

// begin notes a call, and end its end. Without calls there is no data.
func (g *guest) begin() {
	g.begun.Add(1)
	g.calls.Add(1)
}

func (g *guest) end() {
	if g.calls.Add(-1) == 0 && (g.begun.Load() >= g.opened.Load() || g.gone.Load()) {
		g.clear()
	}
}

// incoming is a connection that counts what it reads: the bytes of DATA frames of HTTP/2,
// and for each HEADERS frame what a call takes.
type incoming struct {
	net.Conn
	guest *guest

	in, out frames
}

// preface is the length of what clients send first.
const preface = 24

// Read implements [net.Conn].
func (c *incoming) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.guest.add(c.scan(p[:n], time.Now()))
	if c.guest.gone.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// scan returns how much p counts, which came at now.
func (c *incoming) scan(p []byte, now time.Time) (n int64) {
	g := c.guest
	data := c.in.scan(p, func(f frame) {
		switch f.kind {
		case headersFrame:
			n += waiting
			g.opened.Add(1)
			g.streams.begin(f.stream, now)
		case resetFrame:
			if since, open := g.streams.end(f.stream); open {
				g.reset(since, now)
			}
		}
	})
	return n + data
}

// hall is a listener whose connections leave the inbox when they are closed, also those
// that were no HTTP/2.
type hall struct{ net.Listener }

// Accept implements [net.Listener].
func (h hall) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &arrival{Conn: c}, nil
}

// arrival is a connection of a hall.
type arrival struct {
	net.Conn
	guest atomic.Pointer[guest] // nil before the handshake
}

// Close implements [net.Conn].
func (a *arrival) Close() error {
	err := a.Conn.Close()
	if g := a.guest.Load(); g != nil {
		g.inbox.leave(g)
	}
	return err
}

// counting is a stream whose messages are taken off the inbox.
type counting struct {
	grpc.ServerStream
	guest *guest
	waits bool // the call waits for its only message
	small bool // its messages are compressed
}

// count returns stream with its messages taken off the inbox, and what ends the call.
func count(stream grpc.ServerStream, many bool) (counted grpc.ServerStream, end func()) {
	g := guestOf(stream.Context())
	if g == nil {
		return stream, func() {}
	}
	g.begin()
	c := &counting{ServerStream: stream, guest: g, waits: !many, small: compressed(stream.Context())}
	if many { // it may wait for long
		c.received(waiting)
	} else if g.expected.Add(1) == 1 {
		g.progress.Store(time.Now().UnixNano())
	}
	return c, c.end
}

// mostSmaller is how much smaller compression can make a message: gzip, about 1030 times.
const mostSmaller = 1100

// compressed reports whether messages of a call are compressed. How many bytes came for
// them is not known.
func compressed(ctx context.Context) bool {
	t, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	return ok && t.RecvCompress() != "" && t.RecvCompress() != "identity"
}

// received takes a message of n bytes off the inbox.
func (s *counting) received(n int64) {
	if s.waits {
		s.waits = false
		s.guest.expected.Add(-1)
		n += waiting
	}
	s.guest.take(n)
	s.guest.progress.Store(time.Now().UnixNano())
}

// end ends the call.
func (s *counting) end() {
	if s.waits {
		s.received(0)
	}
	if s.Context().Err() == nil {
		s.guest.kept.Add(1)
	}
	s.guest.end()
}

// RecvMsg implements [grpc.ServerStream].
func (s *counting) RecvMsg(m any) (err error) {
	n := int64(frameHead)
	err = s.ServerStream.RecvMsg(m)
	switch to := m.(type) {
	case *Received:
		n += int64(to.size)
	case proto.Message:
		n += int64(proto.Size(to))
	}
	switch {
	case err != nil:
		n = 0
	case s.small: // the rest stays until the connection has no calls
		n = frameHead + (n-frameHead)/mostSmaller
	}
	s.received(n)
	return err
}

// frameHead is what comes before each message.
const frameHead = 5

// interceptUnary counts calls of the services that gRPC itself brings.
func interceptUnary(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if g := guestOf(ctx); g != nil {
		g.begin()
		defer g.end()
		if m, ok := in.(proto.Message); ok {
			n := int64(proto.Size(m))
			if compressed(ctx) {
				n /= mostSmaller
			}
			g.take(waiting + frameHead + n)
		}
	}
	return next(ctx, in)
}

// unknown answers calls of methods that the server does not have. They are counted, so
// that nothing of them stays in the inbox.
func unknown(_ any, stream grpc.ServerStream) error {
	if _, ok := stream.(*counting); !ok {
		_, end := count(stream, false)
		defer end()
	}
	name, _ := grpc.MethodFromServerStream(stream)
	return status.Errorf(codes.Unimplemented, "unknown method %s", name)
}
