package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/store"
)

// MostWaits is how many requests of HTTP/2 may wait for their clients in ServeLimited.
const MostWaits = 10

// MostIncoming is how many bytes that are not a request yet the connections of ServeLimited may have.
const MostIncoming = 100 << 10

// ServeLimited serves h on l, with at most most connections, until the server is closed. New
// connections are spared for grace. shed is called for each connection that is closed.
func ServeLimited(l net.Listener, most int, grace time.Duration, shed func(), h http.Handler) *http.Server {
	s := &http.Server{Handler: &listener{handler: h}, ConnContext: withLimitedConn, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	limiter := newConnLimiter(l, most, refusal503, shed)
	limiter.grace, limiter.mostWaits = grace, MostWaits
	limiter.incoming.most = MostIncoming
	go func() { _ = s.Serve(limiter) }()
	return s
}

// Handshake makes a handshake with TLS over a connection of a listener, and returns how many of its bytes are counted afterwards.
func Handshake(ctx context.Context, certs *access.Certificates, client *tls.Config) (int64, error) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	l := newConnLimiter(nil, 0, "", func() {})
	l.incoming.most = 1 << 20
	g := &limitedConn{Conn: near, limiter: l}
	done := make(chan error, 1)
	go func() { done <- tls.Client(far, client).HandshakeContext(ctx) }()
	err := tls.Server(g, certs.Config("http/1.1")).HandshakeContext(ctx)
	return l.incoming.total, errors.Join(err, <-done)
}

// CommitOf is commitOf.
var CommitOf = commitOf

// LogChange returns the function that logs changes of a store's nodes.
var LogChange = logChange

// NewInstances returns the function that counts the instances on s until its
// context is done, and the one that returns their number.
func NewInstances(s store.Store) (run func(context.Context, *slog.Logger), number func() int) {
	i := newInstances(s)
	return func(ctx context.Context, log *slog.Logger) { i.beat(ctx, log); i.run(ctx, log) }, i.number
}

// NewEpisodes returns an observer that logs outages, and the function that runs
// it.
func NewEpisodes() (to weir.Observer, run func(context.Context, *slog.Logger)) {
	e := newEpisodes()
	return &observer{Namespace: metrics.New(metrics.Config{}).Namespace("default"), episodes: e}, e.run
}

// NewObserver returns the observer of an engine in a service with a collector, if
// endpoint is not empty, and the function that ends it.
func NewObserver(endpoint string) (to weir.Observer, end func()) {
	numbers, log := metrics.New(metrics.Config{}), slog.New(slog.DiscardHandler)
	cfg := config.Default()
	cfg.OTLPEndpoint = endpoint
	_, outside, err := keyTexts(cfg)
	if err != nil {
		panic(err)
	}
	t, err := openTelemetry(context.Background(), cfg, numbers, outside, log)
	if err != nil {
		panic(err)
	}
	s := &namespaces{parts: parts{episodes: newEpisodes(), telemetry: t, log: log, kept: &namespace.Kept{}}}
	return s.observer(&reloader{numbers: numbers.Namespace("default"), log: log}, "default", nil), func() { endTelemetry(t, log) }
}

// ErrorLog returns the logger of an HTTP server.
func ErrorLog(to *slog.Logger) *log.Logger { return errorLog(to) }

// Quiet waits as the watch of files does, and returns how long it took from a change
// until the files are read. stamp is asked for the state of the files.
func Quiet(stamp func() string) time.Duration {
	q := newCalm(stamp)
	<-q.due
	q.over()
	began := time.Now()
	q.wait()
	for {
		<-q.due
		if q.over() {
			return time.Since(began)
		}
	}
}
