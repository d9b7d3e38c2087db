package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// connectTimeout is how long making a connection may take. It is far longer than
// a call waits, because a busy server is slow at this.
const connectTimeout = time.Second

// dialer connects to servers for calls that may give up before the connection is
// made. A call that gives up leaves its connection to the next one. It is safe
// for concurrent use.
type dialer struct {
	ctx    context.Context // done when the dialer is closed
	cancel context.CancelFunc
	dials  sync.WaitGroup

	mu     sync.Mutex
	closed bool                     // guarded by mu
	spares map[string]chan net.Conn // guarded by mu; connections left over, by address
}

type dialed struct {
	conn net.Conn
	err  error
}

func newDialer() *dialer {
	d := &dialer{spares: map[string]chan net.Conn{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// dial returns a connection to addr: its own, or one that was left over.
func (d *dialer) dial(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	got, gone := make(chan dialed), make(chan struct{})
	defer close(gone)
	spare, ok := d.spare(addr)
	if !ok {
		return nil, net.ErrClosed
	}
	select {
	case conn := <-spare:
		return conn, nil
	default:
	}
	if !d.start(func() {
		conn, err := connect(d.ctx, addr, config)
		select {
		case got <- dialed{conn, err}:
		case <-gone:
			leave(conn, spare)
		}
	}) {
		return nil, net.ErrClosed
	}
	select {
	case r := <-got:
		return r.conn, r.err
	case conn := <-spare:
		return conn, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// leave keeps conn, unless it is nil, for the next call. It keeps one.
func leave(conn net.Conn, spare chan<- net.Conn) {
	if conn == nil {
		return
	}
	select {
	case spare <- conn:
	default:
		_ = conn.Close() // it was never used
	}
}

// spare returns the place for a left-over connection to addr, and false when the
// dialer is closed.
func (d *dialer) spare(addr string) (chan net.Conn, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.spares[addr]
	if s == nil && !d.closed {
		s = make(chan net.Conn, 1)
		d.spares[addr] = s
	}
	return s, !d.closed
}

// start runs f in a goroutine that close waits for. It returns false when the
// dialer is closed.
func (d *dialer) start(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.dials.Go(f)
	}
	return !d.closed
}

// close ends all dials and closes left-over connections.
func (d *dialer) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.dials.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, spare := range d.spares {
		select {
		case conn := <-spare:
			_ = conn.Close() // it was never used
		default:
		}
	}
}

func connect(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	network := "tcp"
	if addr[0] == '/' {
		network = "unix"
	}
	conn, err := (&net.Dialer{KeepAlive: time.Second}).DialContext(ctx, network, addr)
	if err == nil && config != nil {
		conn, err = encrypt(ctx, conn, addr, config)
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		return nil, &dialError{failed}
	}
	return conn, err
}

// encrypt begins TLS on conn. The server's name is the host of addr where config has none.
func encrypt(ctx context.Context, conn net.Conn, addr string, config *tls.Config) (net.Conn, error) {
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(conn, config)
	err := secure.HandshakeContext(ctx)
	if err == nil {
		return secure, nil
	}
	_ = conn.Close()
	if errors.Is(err, context.DeadlineExceeded) {
		err = errHandshake
	}
	return nil, err
}

// errHandshake is the error of a server that does not answer a TLS handshake. A server
// without TLS waits for the rest of what it takes for a command.
var errHandshake = fmt.Errorf("no answer to a TLS handshake (does the server have TLS on this port?): %w", context.DeadlineExceeded)

// dialError is the error of a connection that could not be made. Its text leaves
// out the address, which is that of the node.
type dialError struct{ *net.OpError }

func (e *dialError) Error() string { return e.Err.Error() }

func (e *dialError) Unwrap() error { return e.OpError }
