package client

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
)

// Client asks a service for decisions. Make one with [New]. It is safe for concurrent
// use. After Close its methods return errors that wrap [weir.ErrClosed].
type Client struct {
	conn    *grpc.ClientConn
	rest    weirv1.WeirServiceClient
	timeout time.Duration
	retries int

	streams []*stream // empty: each call is a unary gRPC call
	turn    atomic.Uint32
	unary   sync.Pool // of *exchange
	calls   sync.Pool // of *call

	decisions sync.Pool // of *weir.Decision, while an answer is read

	alive     context.Context // until Close
	end       context.CancelFunc
	goings    sync.WaitGroup // of goroutines
	closing   sync.Once
	closeConn error
}

// New returns a client of the service at target: an address such as
// "weir.internal:8082", or one with a scheme. "https://" means TLS with the certificates
// that the system trusts, and "http://" no TLS. "unix:/run/weir" is a
// local socket. Other names are those of gRPC, such as "dns:///weir.internal:8082".
//
// New does not connect: the first call does. New returns an error only for wrong
// arguments.
func New(target string, options ...Option) (*Client, error) {
	c := &Client{}
	o := defaults()
	for _, option := range options {
		if option != nil {
			option(&o)
		}
	}
	target, secure := strings.CutPrefix(target, "https://")
	if secure && o.tls == nil {
		o.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	target = strings.TrimPrefix(target, "http://")
	switch {
	case target == "":
		return nil, errors.New("client: target: empty: want the address of a service, such as weir.internal:8082")
	case o.timeout <= 0:
		return nil, errors.New("client: timeout: want more than 0")
	case o.streams < 0:
		return nil, errors.New("client: streams: want at least 0")
	case o.retries < 0:
		return nil, errors.New("client: retries: want at least 0")
	}
	conn, err := grpc.NewClient(target, o.dial()...)
	if err != nil {
		return nil, err
	}
	c.conn, c.rest, c.timeout, c.retries = conn, weirv1.NewWeirServiceClient(conn), o.timeout, o.retries
	c.alive, c.end = context.WithCancel(context.Background())
	c.decisions.New = func() any { return new(weir.Decision) }
	c.unary.New = func() any { return new(exchange) }
	c.calls.New = func() any { return &call{done: make(chan struct{}, 1)} }
	for range o.streams {
		c.streams = append(c.streams, newStream(c))
	}
	return c, nil
}

// Service returns the generated client of the API, on the connection of c. It has the
// calls that Client lacks, such as Top, Denials and Rules.
func (c *Client) Service() weirv1.WeirServiceClient { return c.rest }

// Close ends the calls in flight, with an error that wraps [weir.ErrClosed], and the
// connection. It returns when all goroutines of c have ended. Closing twice is safe.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.end()
		for _, s := range c.streams {
			s.close()
		}
		c.goings.Wait()
		c.closeConn = c.conn.Close()
	})
	return c.closeConn
}

// Option is an option of [New].
type Option func(*options)

type options struct {
	token, namespace string
	tls              *tls.Config
	timeout          time.Duration
	streams          int
	retries          int
}

// maxAnswer is the maximum size of an answer, in bytes. The service's limit is --max-answer, which is 8 MiB by
// default.
const maxAnswer = 64 << 20

// Windows, in bytes: how much of a stream and of a connection may arrive before it is
// read. gRPC would otherwise estimate the bandwidth-delay product, with a ping for each
// answer.
const (
	streamWindow = 1 << 20
	connWindow   = 4 << 20
)

// A connection on which nothing has arrived for ping, while calls wait, is checked, and is lost if the service does not
// answer within pong, or if what was sent is not acknowledged for so long. Otherwise calls would use a connection
// that a network has dropped without a word for as long as the system repeats its packets, mostly 15 minutes.
const ping, pong = 15 * time.Second, 5 * time.Second

func defaults() options { return options{timeout: 5 * time.Second} }

// WithToken sends a token with each call. Default: none.
func WithToken(token string) Option { return func(o *options) { o.token = token } }

// WithNamespace makes all calls for one namespace of the service. Default: the
// namespace of the token, or the one called default.
func WithNamespace(name string) Option { return func(o *options) { o.namespace = name } }

// WithTLS uses TLS with a configuration, which can have a certificate for the client.
// Default: none, unless the target starts with https://.
func WithTLS(config *tls.Config) Option { return func(o *options) { o.tls = config } }

// WithTimeout sets how long a call takes at most if its context has no deadline.
// Default: 5 s.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithStreams makes calls share n streams. One stream uses one CPU of the service; several
// streams can use several CPUs. With n = 0, each call is a separate gRPC call. Default: 0.
func WithStreams(n int) Option { return func(o *options) { o.streams = n } }

// WithRetries gives each take, record, refund and settle of one request an idempotency key, unless it has one, and sends it
// again up to n times if its answer is lost or the service is unavailable. Each attempt gets an equal part of
// the time that is left. If the service has no room for the answer under a new key, the call is sent once without
// one. DoAll does not retry. Default: 0.
func WithRetries(n int) Option { return func(o *options) { o.retries = n } }

// dial returns the options of the connection. gRPC resends only calls that have not left
// this process or that the service has not read. Other retries are off, even if a name service
// asks for them.
func (o *options) dial() []grpc.DialOption {
	creds := insecure.NewCredentials()
	if o.tls != nil {
		creds = credentials.NewTLS(o.tls)
	}
	dials := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: ping, Timeout: pong}),
	}
	if sent := o.metadata(); len(sent) > 0 {
		dials = append(dials, grpc.WithPerRPCCredentials(sent))
	}
	return dials
}

func (o *options) metadata() metadata {
	m := metadata{}
	if o.token != "" {
		m["authorization"] = "Bearer " + o.token
	}
	if o.namespace != "" {
		m["weir-namespace"] = o.namespace
	}
	return m
}

// metadata is what is sent with each call. It implements
// [credentials.PerRPCCredentials].
type metadata map[string]string

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (m metadata) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return m, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials]. Services on the
// same machine or in a trusted network often have no TLS.
func (metadata) RequireTransportSecurity() bool { return false }
