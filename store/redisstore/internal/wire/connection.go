package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// ringScale makes room for 2^12 calls in the queue of a connection, where a
	// slice of calls takes the place of one. The library does not look at
	// contexts once the queue is full, and calls that were given up stay in it
	// until they are answered. So it holds four times the default of calls in
	// flight.
	ringScale = 12

	// deadAfter is how long a connection may give no answer, pings included, before
	// it is closed. Two time-outs come on top, so that this ends no call early.
	deadAfter = time.Second

	// pingEvery is how long a connection is unused before it is tried.
	pingEvery = time.Second

	bufferSize = 64 << 10
)

// connection is a connection to a server, as a client of the Redis library that has
// this one for calls and does not make it again. The library makes others, in the
// caller's time, for checks of the server.
type connection struct {
	rueidis.Client
	conn net.Conn
	lost atomic.Bool
}

// abort ends the calls that wait for replies, with the connection.
func (c *connection) abort() { _ = c.conn.Close() }

// errGone is the error of a call that meets a connection just after its loss.
var errGone = errors.New("the connection has broken")

// connection connects to the server at addr, for calls that share the connection or for one
// call at a time. It calls lost when the connection ends.
func (c *Config) connection(addr string, d *dialer, shared bool, lost func()) (*connection, error) {
	o := c.options(addr)
	if !shared {
		// Calls write and read in their own goroutine as long as there is one at a time.
		// The library's pings would be others; the manager asks instead.
		o.AlwaysPipelining, o.Dialer.KeepAlive = false, 0
	}
	return c.connect(o, d, lost)
}

// connect returns a connection with options o.
func (c *Config) connect(o rueidis.ClientOption, d *dialer, lost func()) (*connection, error) {
	l := &connection{}
	var made atomic.Bool
	var up func() bool // ends the wait for d
	var first *watched
	o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, config *tls.Config) (net.Conn, error) {
		if made.Swap(true) {
			if l.lost.Load() {
				return nil, errGone
			}
			return d.dial(ctx, addr, config)
		}
		conn, err := d.dial(ctx, addr, config)
		if err != nil {
			return nil, err
		}
		// A store that is closed does not wait for the server's greeting.
		up = context.AfterFunc(d.ctx, func() { _ = conn.Close() })
		first = &watched{Conn: conn, ended: func() { l.lost.Store(true); lost() }}
		return first, nil
	}
	client, err := rueidis.NewClient(o)
	if up != nil {
		up()
	}
	if err == nil {
		l.Client, l.conn = client, first
		return l, nil
	}
	if client != nil {
		client.Close()
	}
	if _, answered := rueidis.IsRedisErr(err); first != nil && !answered {
		if said := first.said.Load(); said != nil {
			return nil, said
		}
	}
	return nil, err
}

// greetingError is what a server says that closes a new connection: it has too
// many, takes none from this machine, or speaks another protocol.
type greetingError struct{ text string }

func (e *greetingError) Error() string { return e.text }

// watched is a connection that calls ended when it is closed.
type watched struct {
	net.Conn
	read  bool // of the one reader
	said  atomic.Pointer[greetingError]
	once  sync.Once
	ended func()
}

// replyKinds are the bytes that a reply can begin with, in the newer protocol too.
const replyKinds = "+-:$*_,#!=(%~|>"

// Read implements [net.Conn]. It keeps an error that comes before all else, and
// the answer of a server that speaks another protocol.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if !w.read && n > 0 {
		w.read = true
		switch line, _, _ := strings.Cut(string(b[:min(n, 200)]), "\r\n"); {
		case b[0] == '-':
			w.said.Store(&greetingError{line[1:]})
		case strings.IndexByte(replyKinds, b[0]) < 0:
			w.said.Store(&greetingError{fmt.Sprintf("not a Redis server: it answers %q", line)})
		}
	}
	return n, err
}

// Close implements [net.Conn].
func (w *watched) Close() error {
	err := w.Conn.Close()
	w.once.Do(w.ended)
	return err
}

// options returns the options of the Redis library's client of one server. It
// retries nothing, because it cannot know what may count twice. It queues every
// call: in its other mode a caller who gives up closes the connection, for all.
func (c *Config) options(addr string) rueidis.ClientOption {
	o := rueidis.ClientOption{
		InitAddress:         []string{addr},
		TLSConfig:           c.TLS,
		ClientName:          c.ClientName,
		SelectDB:            c.DB,
		AlwaysPipelining:    true,
		PipelineMultiplex:   -1, // one connection
		RingScaleEachConn:   ringScale,
		ReadBufferEachConn:  bufferSize,
		WriteBufferEachConn: bufferSize,
		BlockingPoolSize:    c.InFlight,
		BlockingPoolCleanup: time.Minute,
		ConnWriteTimeout:    deadAfter + 2*c.Timeout,
		Dialer:              net.Dialer{Timeout: connectTimeout, KeepAlive: pingEvery},
		DisableRetry:        true,
		DisableCache:        true,
		ForceSingleClient:   true,
		ClientSetInfo:       rueidis.DisableClientSetInfo, // it needs a right
	}
	if c.Password != "" {
		o.Username, o.Password = c.Username, c.Password
	}
	return o
}
