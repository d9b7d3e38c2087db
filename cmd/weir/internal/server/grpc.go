package server

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/grpcapi"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/telemetry"
)

// grpcFront serves gRPC at an address of its own. A nil grpcFront serves none.
type grpcFront struct {
	*grpcserver.Server
	at     config.Address
	socket net.Listener
}

// openGRPC returns nil when cfg asks for no gRPC.
func openGRPC(cfg config.Config, api *grpcapi.API, envoy *envoyrls.API, traces *telemetry.Telemetry, doors *doors, resources *resources) (*grpcFront, error) {
	if cfg.GRPCListen == "" {
		return nil, nil
	}
	at, err := config.ParseAddress(cfg.GRPCListen)
	if err != nil {
		return nil, err // unreachable after Validate
	}
	socket, err := open("grpc-listen", at)
	if err != nil {
		return nil, err
	}
	if resources.connections > 0 {
		socket = newConnLimiter(socket, resources.connections, false, resources.shedding("grpc"))
	}
	to := grpcserver.Config{Auth: doors.auth("grpc", at, access.ReachNamed), Resources: resources.requests("grpc"), Working: working}
	if at.TLS() {
		to.Certs = doors.certs
	}
	if traces.Traces() {
		to.Trace = traces.Context
	}
	s := grpcserver.New(to)
	s.Add(grpcapi.Service, grpcapi.File, api.Methods())
	s.Add(envoyrls.Service, envoyrls.File, envoy.Methods(), envoyrls.Health)
	return &grpcFront{s, at, socket}, nil
}

// working returns what marks a connection while it is at work.
func working(c net.Conn) func(by int32) {
	if g, ok := c.(*limitedConn); ok {
		return g.work
	}
	return nil
}

// report reports to the health service what /readyz answers, until ctx is done.
func (g *grpcFront) report(ctx context.Context, ready *readiness) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.SetReady(ready.is())
		}
	}
}

// setReady calls SetReady. It does nothing when g is nil.
func (g *grpcFront) setReady(is bool) {
	if g != nil {
		g.SetReady(is)
	}
}

func (g *grpcFront) serve() error { return g.Serve(g.socket) }

// Close closes the listener at once, even if it never served.
func (g *grpcFront) Close() error { return errors.Join(g.Server.Close(), g.socket.Close()) }

// url returns the address as a URL, or an empty string when g is nil.
func (g *grpcFront) url() string {
	if g == nil {
		return ""
	}
	return urlOf(g.at, g.socket)
}
