package grpcserver

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// Method is one call of a service.
type Method struct {
	// Name is the method's name without its service.
	Name string

	// Need are the scopes that a caller needs.
	Need access.Scope

	// Serve answers a call. Errors become gRPC codes; see [Error].
	Serve func(*Call) error

	// ClientStreams and ServerStreams report whether the client and the server
	// send several messages. If one does, a call has [access.StreamBytes] reserved.
	ClientStreams, ServerStreams bool
}

// Call is one call under way. It is not safe for concurrent use, except that one
// goroutine may receive while another sends.
type Call struct {
	grpc.ServerStream

	// Caller is the authenticated caller. Without authentication it has all scopes.
	Caller *access.Holder

	server *Server
	conn   *connection
	ctx    context.Context
	method *Method
	life   context.Context // see Leaving

	memory access.Reservation // of a call of a Unary method
	answer int64              // bytes of its answer
	late   *time.Timer        // runs while a message of a stream is sent; nil: no stream
}

// Context implements [grpc.ServerStream].
func (c *Call) Context() context.Context { return c.ctx }

// errReadsSlowly is the error of a caller that lets a stream wait.
var errReadsSlowly = &answer.Problem{Status: http.StatusRequestTimeout, Detail: "the caller has not read for " + stalled.String()}

// SendMsg implements [grpc.ServerStream]. A stream ends when its caller has read too little for some seconds, even if its
// connection, which it can share with others, makes progress.
func (c *Call) SendMsg(m any) error {
	if c.late == nil {
		return c.ServerStream.SendMsg(m)
	}
	if !c.method.ClientStreams {
		c.conn.mark(0)
	}
	c.late.Reset(stalled)
	defer c.late.Stop()
	return c.ServerStream.SendMsg(m)
}

// serveStream serves a call of a method that streams. It returns when the caller reads too little, which ends what is still
// done for the call.
func (c *Call) serveStream() error {
	share := c.Caller.Share()
	if err := c.server.config.Resources.OpenStream(share); err != nil {
		return err
	}
	defer c.server.config.Resources.CloseStream(share)
	c.conn.mark(0)
	if c.method.ClientStreams { // the client may send nothing for long
		var leave context.CancelFunc
		c.life, leave = context.WithCancel(c.life)
		defer leave()
		go leaveWithout(c.life, leave, func() bool {
			now, err := c.server.authorize(c.ctx, c.conn, c.method.Need)
			return err == nil && now.Share() == share
		})
	}
	slow, served := make(chan struct{}, 1), make(chan error, 1)
	c.late = time.AfterFunc(stalled, func() { slow <- struct{}{} })
	c.late.Stop()
	go func() { served <- c.method.Serve(c) }()
	select {
	case err := <-served:
		return err
	case <-slow:
		return errReadsSlowly
	}
}

// Begin begins a decision, which [Call.End] must end. It returns an [*access.Overload] if the service is
// overloaded.
func (c *Call) Begin() error {
	if err := c.server.config.Resources.Begin(); err != nil {
		return err
	}
	c.conn.mark(1)
	return nil
}

// End ends the decision that Begin began, before the answer is sent.
func (c *Call) End() {
	c.conn.mark(-1)
	c.server.config.Resources.End()
}

// Namespace returns the namespace of spaces that the call is for: the one in its
// metadata weir-namespace or, without that, the one of its caller. For this the
// authenticator's [access.Reach] must be [access.ReachNamed].
func (c *Call) Namespace(spaces *namespace.Set) (*namespace.Namespace, error) {
	asked, err := namespace.Asked("", metadata.ValueFromIncomingContext(c.Context(), "weir-namespace"))
	if err != nil {
		return nil, err
	}
	return spaces.Choose(c.server.config.Auth, c.Caller, asked)
}

// Reservation returns an empty reservation of memory within the resource limits of the listener.
func (c *Call) Reservation() access.Reservation {
	return access.Reservation{Resources: c.memory.Resources, Caller: c.memory.Caller}
}

// Reserve reserves n bytes more for the answer of a [Unary] method, until it is sent. Small answers are not counted.
func (c *Call) Reserve(n int64) error {
	if c.answer += n; c.answer <= smallMessage {
		return nil
	}
	return c.memory.Reserve(n)
}

// Leaving returns a channel that is closed when the server shuts down, or when the token of a client that streams is
// revoked. A call that can last long should end then, with [ErrStopping].
func (c *Call) Leaving() <-chan struct{} { return c.life.Done() }

// Again authenticates the caller of a long call again, because tokens may have changed. The error is an
// [*access.Refusal].
func (c *Call) Again(need access.Scope) (err error) {
	c.Caller, err = c.server.authorize(c.ctx, c.conn, need)
	return err
}

// handler returns the gRPC handler of m.
func (s *Server) handler(m *Method) grpc.StreamHandler {
	return func(_ any, stream grpc.ServerStream) error {
		ctx := stream.Context()
		conn := connectionOf(ctx)
		stream, end := track(stream, m.ClientStreams)
		defer end()
		caller, err := s.authorize(ctx, conn, m.Need)
		if err != nil {
			return Error(err)
		}
		if t, ok := stream.(*tracked); ok {
			t.admitted = true
		}
		if isCompressed(ctx) {
			return errCompressed
		}
		c := &Call{ServerStream: stream, Caller: caller, server: s, conn: conn, ctx: ctx, method: m, life: s.life}
		c.memory = access.Reservation{Resources: s.config.Resources, Caller: caller}
		if s.config.Trace != nil {
			c.ctx = s.config.Trace(ctx, func(name string) string { return first(metadata.ValueFromIncomingContext(ctx, name)) })
		}
		if m.ClientStreams || m.ServerStreams {
			return Error(c.serveStream())
		}
		return Error(m.Serve(c))
	}
}

// recheck is how often the caller of a stream from clients is authenticated again.
const recheck = 15 * time.Second

// leaveWithout calls leave when the caller of a call has lost its rights, until life ends.
func leaveWithout(life context.Context, leave func(), rights func() bool) {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
			if !rights() {
				leave()
				return
			}
		}
	}
}

// first returns the first of values, or an empty string.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// Unary returns the Serve of a method that answers one message with one. It
// receives the message into a new In, a generated message, calls answer within the
// resource limits of the listener, and sends what that returns.
func Unary[In, Out any, In1 isMessage[In], Out1 isMessage[Out]](answer func(ctx context.Context, c *Call, in *In) (*Out, error)) func(*Call) error {
	return func(c *Call) error {
		in := new(In)
		defer c.memory.Free()
		received := Received{Message: In1(in), Admit: func(b []byte) error {
			if len(b) <= smallMessage {
				return nil
			}
			return c.memory.Reserve(decodedTimes * int64(len(b)))
		}}
		if err := c.RecvMsg(&received); err != nil {
			return err
		}
		if received.Err != nil {
			return received.Err
		}
		if err := c.Begin(); err != nil {
			return err
		}
		out, err := answer(c.Context(), c, in)
		c.End()
		if err != nil {
			return err
		}
		return c.SendMsg(Out1(out))
	}
}

// Messages and answers of up to smallMessage bytes are not counted as memory by [Unary]. Larger messages are, with
// decodedTimes their size: an entry of a map can take six bytes, and some 80 when it is decoded.
const (
	smallMessage = 64 << 10
	decodedTimes = 16
)

// isMessage is the pointer to a generated message M.
type isMessage[M any] interface {
	*M
	proto.Message
}

// connectionOf returns the connection of a call, or nil.
func connectionOf(ctx context.Context) *connection {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return nil
	}
	c, _ := p.AuthInfo.(*connection)
	return c
}

// authorize returns the caller if it may make a call that needs scopes. The error is
// an [*access.Refusal].
func (s *Server) authorize(ctx context.Context, c *connection, need access.Scope) (*access.Holder, error) {
	var shown access.Credentials
	shown.Token, shown.Shown = access.Bearer(metadata.ValueFromIncomingContext(ctx, "authorization"))
	if c != nil {
		shown.Address = c.RemoteAddr().String()
		shown.Conn, _ = c.Conn.(access.Conn)
		if state := c.tlsState(); state != nil && len(state.VerifiedChains) > 0 {
			shown.Certificate = state.VerifiedChains[0][0]
		}
	}
	caller, err := s.config.Auth.Authenticate(shown, need)
	if c != nil && err == nil && c.caller.Load() != caller {
		c.caller.Store(caller)
	}
	return caller, err
}

// intercept authenticates the callers of reflection, but not of health, which this package adds itself. It
// counts their messages, and limits their streams. gRPC does not call it for methods that are registered as streams and stream
// neither way.
func (s *Server) intercept(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if strings.HasPrefix(info.FullMethod, "/grpc.") {
		counted, end := track(stream, info.IsClientStream)
		defer end()
		stream = counted
		if isCompressed(stream.Context()) {
			return errCompressed
		}
		if c := connectionOf(stream.Context()); c != nil {
			if err := s.conns.openIdle(c); err != nil {
				return Error(err)
			}
			defer s.conns.closeIdle(c)
		}
	}
	if info.FullMethod == healthpb.Health_Watch_FullMethodName {
		stream = watching{stream, s.names}
	}
	if strings.HasPrefix(info.FullMethod, "/grpc.reflection.") {
		ctx := stream.Context()
		if _, err := s.authorize(ctx, connectionOf(ctx), access.None); err != nil {
			return Error(err)
		}
	}
	return next(srv, stream)
}

// watching is a stream of a client that watches the health of one of names. The health service keeps the name
// until the stream ends, and clients need no token, so that watching replaces an unknown name, which can have
// the size of a message.
type watching struct {
	grpc.ServerStream
	names []string
}

// unknownService is a name that no service has.
const unknownService = "unknown service"

// RecvMsg implements [grpc.ServerStream].
func (w watching) RecvMsg(m any) error {
	err := w.ServerStream.RecvMsg(m)
	if in, ok := m.(*healthpb.HealthCheckRequest); ok && err == nil {
		name := in.Service
		in.Reset() // it may have unknown fields, too
		if in.Service = unknownService; slices.Contains(w.names, name) {
			in.Service = name
		}
	}
	return err
}
