package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrlqs"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/grpcapi"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/koalaapi"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/respapi"
	"github.com/weirhq/weir/cmd/weir/internal/telemetry"
	"github.com/weirhq/weir/internal/stated"
	"github.com/weirhq/weir/store/remote"
)

// front is a listener that serves callers.
type front interface {
	// serve serves until the front is shut down, and then returns nil.
	serve() error

	// Shutdown accepts no more connections and lets requests in flight finish.
	Shutdown(ctx context.Context) error

	// Close closes the listener at once, even if it never served.
	Close() error

	// url returns the address as a URL.
	url() string
}

// socketFront is a front without HTTP.
type socketFront struct {
	server interface {
		Serve(l net.Listener) error
		Shutdown(ctx context.Context) error
		Close() error
	}
	at     config.Address
	socket net.Listener
	scheme string // of the URL
}

func (f *socketFront) serve() error                       { return f.server.Serve(f.socket) }
func (f *socketFront) Shutdown(ctx context.Context) error { return f.server.Shutdown(ctx) }
func (f *socketFront) Close() error                       { return errors.Join(f.server.Close(), f.socket.Close()) }
func (f *socketFront) url() string                        { return urlOf(f.scheme, f.at, f.socket) }

// urlOf returns the URL of a socket, whose scheme with TLS ends in s.
func urlOf(scheme string, at config.Address, socket net.Listener) string {
	switch {
	case at.Scheme == "unix":
		return at.String()
	case at.TLS():
		scheme += "s"
	}
	return scheme + "://" + socket.Addr().String()
}

// openGRPC opens the listener of gRPC.
func openGRPC(l config.Listener, cfg config.Config, api *grpcapi.API, envoy *envoyrls.API, quotas *envoyrlqs.API, traces *telemetry.Telemetry, credentials *credentials, resources *resources) (*socketFront, *grpcserver.Server, error) {
	socket, err := resources.socket(l)
	if err != nil {
		return nil, nil, err
	}
	to := grpcserver.Config{
		Auth: credentials.auth(l, access.ReachNamed), Resources: resources.requests(l.Name), Working: working,
		Age: cfg.GRPCAge, AgeGrace: cfg.GRPCAgeGrace,
	}
	if l.Address.TLS() {
		to.Certs = credentials.certs
	}
	if traces.Traces() {
		to.Trace = traces.Context
	}
	s := grpcserver.New(to)
	s.Add(grpcapi.Service, grpcapi.File, api.Methods())
	s.Add(envoyrls.Service, envoyrls.File, envoy.Methods(), envoyrls.Health)
	s.Add(envoyrlqs.Service, envoyrlqs.File, quotas.Methods())
	return &socketFront{s, l.Address, socket, "http"}, s, nil
}

// working returns what marks a connection while it is at work.
func working(c net.Conn) func(by int32) {
	g, ok := c.(*limitedConn)
	if !ok {
		return nil
	}
	return g.work
}

// report reports to the health service of gRPC what /readyz answers, until ctx is done.
func (r *readiness) report(ctx context.Context, to *grpcserver.Server) {
	tick := time.Tick(time.Second)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			to.SetReady(r.is())
		}
	}
}

// openRESP opens the listener of the protocol of Redis.
func openRESP(l config.Listener, cfg config.Config, namespaces *namespace.Set, backends *backends, credentials *credentials, resources *resources, numbers *metrics.Metrics) (*socketFront, error) {
	socket, err := resources.socket(l)
	if err != nil {
		return nil, err
	}
	if l.Address.TLS() {
		socket = tls.NewListener(socket, credentials.certs.Config())
	}
	server := respapi.New(respapi.Config{
		Namespaces: namespaces, Throttle: backends.throttle(), Shared: backends.waits(),
		Auth: credentials.auth(l, access.ReachNamed), Resources: resources.requests(l.Name), Working: working, Version: Version(),
	})
	numbers.WatchRESP(func() metrics.RESPStats { return metrics.RESPStats(server.Stats()) })
	return &socketFront{server, l.Address, socket, "redis"}, nil
}

// throttle returns a function that opens the limiters of CL.THROTTLE. They count where the rules
// do, under a name that no rule has.
func (c *backends) throttle() func(string, weir.Limit) (*weir.Limiter, error) {
	options := []weir.LimiterOption{weir.WithName(stated.Command)}
	for _, o := range c.options() {
		options = append(options, o)
	}
	return func(namespace string, l weir.Limit) (*weir.Limiter, error) {
		return weir.NewLimiter(l, append(options[:len(options):len(options)], weir.WithNamespace(counted(namespace)))...)
	}
}

// openKoala opens the listener of koala's calls.
func openKoala(at config.Listener, cfg config.Config, c *backends, rules *namespaces, credentials *credentials, resources *resources, log *slog.Logger) (*listener, error) {
	wait := remote.WithTimeout(context.Background(), cfg.KoalaWait())
	api := koalaapi.New(rules.set, koalaapi.Config{
		Ping: c.ping, Context: wait, Auth: credentials.auth(at, access.ReachNamed), Resources: resources.requests(at.Name),
	})
	l, err := listen(at, credentials.certs, resources.connections, resources.incomplete(), resources.shedding(at.Name), api, log)
	if err != nil {
		return nil, err
	}
	l.wrap(koalaapi.Listen)
	l.MaxHeaderBytes = koalaapi.MaxHead
	l.WriteTimeout = 10 * time.Second
	return l, nil
}
