package server

import (
	"errors"
	"net"
	"os"
	"sync"
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
	l := &lazyConn{Conn: c}
	l.read.move, l.write.move = c.SetReadDeadline, c.SetWriteDeadline
	return l
}

// deadline is the deadline of one direction of a connection. A zero time is no
// deadline.
type deadline struct {
	move func(time.Time) error // sets the socket's deadline

	mu     sync.Mutex
	want   time.Time // guarded by mu
	socket time.Time // guarded by mu; that of the socket
	busy   int       // guarded by mu; calls that the socket's deadline can end
}

// set changes the wanted deadline. It moves the socket's if a call is waiting that
// would end too late. Otherwise begin does that, if it is still necessary then.
func (d *deadline) set(t time.Time) (err error) {
	d.mu.Lock()
	d.want = t
	if d.busy > 0 {
		err = d.advanceLocked()
	}
	d.mu.Unlock()
	return err
}

// advanceLocked moves the socket's deadline if it is later than the wanted one.
func (d *deadline) advanceLocked() error {
	if d.want.IsZero() || !d.socket.IsZero() && !d.want.Before(d.socket) {
		return nil
	}
	d.socket = d.want
	return d.move(d.want)
}

// begin must be called before a call of the socket. It returns
// [os.ErrDeadlineExceeded] if the wanted deadline is one that stands for "now";
// then the call must not be made.
func (d *deadline) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isNowLocked() {
		return os.ErrDeadlineExceeded
	}
	if err := d.advanceLocked(); err != nil {
		return err
	}
	d.busy++
	return nil
}

// isNowLocked reports whether the wanted deadline is long past. net/http sets
// such a deadline to end a call at once.
func (d *deadline) isNowLocked() bool {
	return !d.want.IsZero() && d.want.Before(longAgo)
}

// longAgo is a time that no deadline of a running program has by accident.
var longAgo = time.Unix(1e8, 0)

// end must be called after a call of the socket that returned err. It reports
// whether the socket's deadline passed before the wanted one; then the socket has
// the wanted one now, and the call must be repeated.
func (d *deadline) end(err error) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if !d.want.IsZero() && time.Until(d.want) <= 0 {
		return false
	}
	d.socket = d.want
	return d.move(d.want) == nil
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
