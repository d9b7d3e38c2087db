package conn

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

	"github.com/weirhq/weir/store/remote"
)

// Mode is the deployment topology of the servers.
type Mode uint8

const (
	Single   Mode = iota // one server
	Sentinel             // a primary that Sentinels watch over
	Cluster              // a cluster
)

// Config is what connections and calls need. The store's configuration documents
// the fields and fills in the defaults.
type Config struct {
	Mode                                        Mode
	Addrs                                       []string
	Username, Password                          string
	Primary, SentinelUsername, SentinelPassword string

	DB           int
	TLS          *tls.Config
	ClientName   string
	Timeout      time.Duration // 0: none, and neither breaker nor in-flight bound
	InFlight     int
	WaitReplicas int

	// Changed, when not nil, is called for each node that is unavailable, and when
	// it answers again; never twice at the same time for one node.
	Changed func(remote.Change)

	life context.Context // ends when the servers are closed
}

// MaxInFlight is the most calls that may wait for one node: a connection's queue
// has room for as many.
const MaxInFlight = 1 << ringScale

const (
	// connectTimeout is how long making a connection may take. It is far longer than
	// a call waits, because a busy server is slow at this.
	connectTimeout = time.Second

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
	lost  atomic.Bool
	users atomic.Int32 // sends that wait for replicas
}

// connection connects to the server at addr. It calls lost when the connection ends.
func (c *Config) connection(addr string, lost func()) (*connection, error) {
	return c.connect(c.options(addr), lost)
}

// connect returns a connection with options o.
func (c *Config) connect(o rueidis.ClientOption, lost func()) (*connection, error) {
	l := &connection{}
	var made atomic.Bool
	var up func() bool // ends the wait for the end of life
	var first *watched
	o.DialCtxFn = func(_ context.Context, addr string, _ *net.Dialer, config *tls.Config) (net.Conn, error) {
		again := made.Swap(true)
		if again && l.lost.Load() {
			return nil, remote.ErrGone
		}
		conn, err := dial(c.life, addr, config)
		if again || err != nil {
			return conn, err
		}
		// A store that is closed does not wait for the server's greeting.
		up = context.AfterFunc(c.life, func() { _ = conn.Close() })
		first = &watched{Conn: conn, ended: func() { l.lost.Store(true); lost() }}
		return first, nil
	}
	client, err := rueidis.NewClient(o)
	if up != nil {
		up()
	}
	if err == nil {
		l.Client = client
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

// dial connects to the server at addr.
func dial(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
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
