package server

import (
	"errors"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lazyListener accepts connections as [lazyConn].
type lazyListener struct{ net.Listener }

// Accept implements [net.Listener].
func (l lazyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newLazyConn(c), nil
}

// lazyConn is a connection that moves the deadlines of its socket only when it
// must. An HTTP server sets about eight deadlines for each request, most of them
// later than the one before, and each costs a lock and a timer of the runtime. A
// lazyConn keeps the wanted deadline beside the one of the socket. As long as the
// socket's is the earlier one, it stays: when it passes too early, Read and Write
// set the wanted one and go on. In this way a busy connection sets a deadline
// once in some seconds instead of eight times for each request.
//
// It has no ReadFrom, which would write past its deadlines. Its methods are safe
// for concurrent use, as those of [net.Conn] are.
type lazyConn struct {
	net.Conn
	read, write deadline
}

func newLazyConn(c net.Conn) *lazyConn {
	now := time.Now()
	l := &lazyConn{Conn: c}
	l.read.begun, l.write.begun = now, now
	l.read.move, l.write.move = c.SetReadDeadline, c.SetWriteDeadline
	for _, d := range []*deadline{&l.read, &l.write} {
		d.want.Store(never)
		d.socket.Store(never)
	}
	return l
}

// deadline is the deadline of one direction of a connection. Instants are
// nanoseconds since the connection began, on the clock that does not jump.
//
// set, begin and end take no lock as long as the socket's deadline stays. A call is
// never left with a deadline that is too late: set stores want and then reads busy,
// and begin adds to busy and then reads want, so that at least one of the two sees
// what the other has done and moves the socket's deadline.
type deadline struct {
	begun  time.Time
	want   atomic.Int64 // the wanted deadline, or never
	socket atomic.Int64 // the socket's, or never; changed under mu
	busy   atomic.Int64 // calls that the socket's deadline can end

	mu   sync.Mutex
	move func(time.Time) error // sets the socket's deadline; called under mu
}

// never is the instant of no deadline.
const never = math.MaxInt64

// set changes the wanted deadline. It moves the socket's if a call is waiting that
// would end too late. Otherwise begin does that, if it is still necessary then.
func (d *deadline) set(t time.Time) error {
	at := int64(never)
	if !t.IsZero() {
		at = int64(t.Sub(d.begun))
	}
	d.want.Store(at)
	if d.busy.Load() == 0 {
		return nil
	}
	return d.advance()
}

// advance moves the socket's deadline if it is later than the wanted one.
func (d *deadline) advance() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if want := d.want.Load(); want < d.socket.Load() {
		return d.moveLocked(want)
	}
	return nil
}

func (d *deadline) moveLocked(at int64) error {
	d.socket.Store(at)
	if at == never {
		return d.move(time.Time{})
	}
	return d.move(d.begun.Add(time.Duration(at)))
}

// begin must be called before a call of the socket. It returns
// [os.ErrDeadlineExceeded] if the wanted deadline was before the connection: net/http
// sets such a deadline to end a call at once. Then the call must not be made.
func (d *deadline) begin() (err error) {
	d.busy.Add(1)
	want := d.want.Load()
	switch {
	case want <= 0:
		err = os.ErrDeadlineExceeded
	case want < d.socket.Load():
		err = d.advance()
	}
	if err != nil {
		d.busy.Add(-1)
	}
	return err
}

// end must be called after a call of the socket that returned err. It reports
// whether the socket's deadline passed before the wanted one; then the socket has
// the wanted one now, and the call must be repeated.
func (d *deadline) end(err error) (again bool) {
	d.busy.Add(-1)
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	want := d.want.Load()
	if want <= int64(time.Since(d.begun)) {
		return false
	}
	return d.moveLocked(want) == nil
}

// Read implements [net.Conn].
func (c *lazyConn) Read(p []byte) (int, error) {
	for {
		if err := c.read.begin(); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(p)
		switch again := c.read.end(err); {
		case !again:
			return n, err
		case n > 0:
			return n, nil
		}
	}
}

// Write implements [net.Conn].
func (c *lazyConn) Write(p []byte) (written int, err error) {
	for {
		if err := c.write.begin(); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:])
		written += n
		if again := c.write.end(err); !again {
			return written, err
		}
	}
}

// SetReadDeadline implements [net.Conn].
func (c *lazyConn) SetReadDeadline(t time.Time) error { return c.read.set(t) }

// SetWriteDeadline implements [net.Conn].
func (c *lazyConn) SetWriteDeadline(t time.Time) error { return c.write.set(t) }

// SetDeadline implements [net.Conn].
func (c *lazyConn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.set(t), c.write.set(t))
}

// NetConn returns the connection below.
func (c *lazyConn) NetConn() net.Conn { return c.Conn }

// CloseWrite shuts down the writing side. net/http uses it before it closes a
// connection from which it has not read everything.
func (c *lazyConn) CloseWrite() error {
	if tcp, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return errors.ErrUnsupported
}
