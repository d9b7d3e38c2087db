package grpcserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"google.golang.org/grpc/encoding"
)

// Config configures a [Server]. The zero value serves everyone, without TLS and without resource limits.
type Config struct {
	// Auth authenticates callers. Nil admits everyone.
	Auth *access.Authenticator

	// Certs are for TLS. Nil: the listener has none.
	Certs *access.Certificates

	// Resources limits concurrent work. Nil has no limits.
	Resources *access.ResourceLimits

	// Age is how long a connection stays open before the client is asked to open another one,
	// and AgeGrace how much longer its calls may take. 0 sets no limit.
	Age, AgeGrace time.Duration

	// Trace returns ctx with the trace of a caller, whose metadata get returns. Nil:
	// callers have no traces.
	Trace func(ctx context.Context, get func(name string) string) context.Context

	// Working returns a function that is called with 1 when a call on a
	// connection begins to be decided, with -1 at its end, and with 0 when a stream
	// is opened or goes on. It may be nil, and may return nil.
	Working func(net.Conn) func(by int32)
}

// Limits of one connection.
const (
	maxStreams   = 256 // calls of one connection at the same time
	maxHeaders   = 16 << 10
	streamWindow = 64 << 10 // bytes that a client may send before they are read
	connWindow   = 1 << 20
	handshake    = 5 * time.Second
	idle         = 10 * time.Minute
	ping, pong   = time.Minute, 20 * time.Second // a client that does not answer a ping is gone
)

// workers is how many goroutines serve one call after the other. Further calls have separate goroutines,
// whose stacks have to grow first, which takes a quarter of the time of a call.
const workers = 64

// Server is a gRPC server on one listener. Make one with [New], add services with
// [Server.Add], and then call [Server.Serve]. Other methods are safe for
// concurrent use.
type Server struct {
	grpc    *grpc.Server
	health  *health.Server
	config  Config
	conns   connections
	names   []string // of the services, for health
	ready   atomic.Bool
	life    context.Context // until the server shuts down
	leave   context.CancelFunc
	closing sync.Once
}

// New returns a server with the services for health and for reflection.
func New(c Config) *Server {
	s := &Server{config: c, health: health.NewServer(), names: []string{""}}
	s.life, s.leave = context.WithCancel(context.Background())
	if s.config.Auth != nil && s.config.Auth.Keys == nil {
		s.config.Auth = nil
	}
	if c.Resources != nil {
		s.conns.max = c.Resources.Memory
		s.conns.shed = c.Resources.ShedConnection
	}
	s.conns.settingUp, s.conns.leaving = make(chan struct{}, maxSettingUp), s.life.Done()
	s.grpc = grpc.NewServer(
		grpc.Creds(newCredentials(c)),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")}),
		grpc.RPCDecompressor(refusal{}), //nolint:staticcheck // the only way to refuse what grpc-go would decompress
		grpc.MaxRecvMsgSize(sizes.Message),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ReadBufferSize(readBuffer),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: idle, MaxConnectionAge: c.Age, MaxConnectionAgeGrace: c.AgeGrace, Time: ping, Timeout: pong,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(enqueue),
		grpc.StreamInterceptor(s.intercept),
		grpc.UnaryInterceptor(interceptUnary),
		grpc.UnknownServiceHandler(unknown),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(workers),
	)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc) // includes the older version, which ghz uses
	s.SetReady(true)
	return s
}

// Add adds a service with its methods. name is its full name, such as
// envoy.service.ratelimit.v3.RateLimitService, and file is the path of the .proto
// file that defines it. health lists further names under which the health of the
// service is asked for. Add must not be called after Serve.
func (s *Server) Add(name, file string, methods []Method, health ...string) {
	desc := grpc.ServiceDesc{ServiceName: name, HandlerType: (*any)(nil), Metadata: file}
	for i := range methods {
		m := &methods[i]
		desc.Streams = append(desc.Streams, grpc.StreamDesc{
			StreamName: m.Name, Handler: s.handler(m), ClientStreams: m.ClientStreams, ServerStreams: m.ServerStreams,
		})
	}
	s.grpc.RegisterService(&desc, nil)
	s.names = append(append(s.names, name), health...)
	s.SetReady(s.ready.Load())
}

// SetReady sets what the health service reports: whether the server accepts new
// calls.
func (s *Server) SetReady(ready bool) {
	s.ready.Store(ready)
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		status = healthpb.HealthCheckResponse_SERVING
	}
	for _, name := range s.names {
		s.health.SetServingStatus(name, status)
	}
}

// Serve serves the connections of l until the server is shut down. It then
// returns nil.
func (s *Server) Serve(l net.Listener) error {
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { s.conns.watch(ctx) })
	err := s.grpc.Serve(listener{l, &s.conns})
	stop()
	watching.Wait()
	if s.life.Err() == nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Shutdown accepts no more connections and calls, and lets calls in flight finish. Long calls are notified
// by [Call.Leaving]. If ctx is done first, Shutdown ends them and returns its error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.leave()
	s.health.Shutdown()
	ended := make(chan struct{})
	go func() { s.grpc.GracefulStop(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		s.grpc.Stop()
		<-ended
		return ctx.Err()
	}
}

// Close ends the server at once, even if it never served.
func (s *Server) Close() error {
	s.leave()
	s.closing.Do(s.grpc.Stop)
	return nil
}
