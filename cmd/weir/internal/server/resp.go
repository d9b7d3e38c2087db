package server

import (
	"crypto/tls"
	"errors"
	"net"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/respapi"
)

// respFront serves the protocol of Redis at an address of its own. A nil respFront
// serves none.
type respFront struct {
	*respapi.Server
	at     config.Address
	socket net.Listener
}

// openRESP returns nil when cfg asks for no such calls.
func openRESP(cfg config.Config, spaces *namespace.Set, counts *counts, doors *doors, resources *resources, numbers *metrics.Metrics) (*respFront, error) {
	if cfg.RESPListen == "" {
		return nil, nil
	}
	at, err := config.ParseRESPAddress(cfg.RESPListen)
	if err != nil {
		return nil, err // unreachable after Validate
	}
	socket, err := open("resp-listen", at)
	if err != nil {
		return nil, err
	}
	if resources.connections > 0 {
		socket = newConnLimiter(socket, resources.connections, false, resources.shedding("resp"))
	}
	if at.TLS() {
		socket = tls.NewListener(socket, doors.certs.Config())
	}
	server := respapi.New(respapi.Config{
		Spaces: spaces, Throttle: counts.throttle(cfg), Shared: counts.waits(),
		Auth: doors.auth("resp", at, access.ReachNamed), Resources: resources.requests("resp"), Working: working, Version: Version(),
	})
	numbers.WatchRESP(func() metrics.RESPStats { return metrics.RESPStats(server.Stats()) })
	return &respFront{server, at, socket}, nil
}

// throttle returns what opens the limiters of CL.THROTTLE. They count where the rules
// do, under a name that no rule has.
func (c *counts) throttle(cfg config.Config) func(weir.Limit) (*weir.Limiter, error) {
	options := []weir.LimiterOption{weir.WithName("CL.THROTTLE")}
	for _, o := range c.options(cfg) {
		options = append(options, o)
	}
	return func(l weir.Limit) (*weir.Limiter, error) { return weir.NewLimiter(l, options...) }
}

func (r *respFront) serve() error { return r.Serve(r.socket) }

// Close closes the listener at once, even if it never served.
func (r *respFront) Close() error { return errors.Join(r.Server.Close(), r.socket.Close()) }

// url returns the address as a URL, or an empty string when r is nil.
func (r *respFront) url() string {
	switch {
	case r == nil:
		return ""
	case r.at.Scheme == "unix":
		return "unix:" + r.at.Host
	case r.at.TLS():
		return "rediss://" + r.socket.Addr().String()
	}
	return "redis://" + r.socket.Addr().String()
}
