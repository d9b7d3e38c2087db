// Package connectlimit limits the calls of connect servers and clients, by an
// interceptor.
//
//	limit := connectlimit.PerIP(100, time.Minute)
//	path, handler := pingv1connect.NewPingServiceHandler(server, connect.WithInterceptors(limit))
//
// A denial is an error with the code resource_exhausted, the wait as a RetryInfo and in
// the header Retry-After, and the limits that are exceeded as a QuotaFailure. Servers
// state the limits in the header of an answer, in a dialect of package headers. A stream
// counts once, when it is opened. What a call has in flight is released when the call or
// the stream has ended. Package guard describes the options and the errors.
package connectlimit

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
)

// Call is a call that is to be decided.
type Call struct {
	// Context is that of the call.
	Context context.Context

	// Spec has the name of the procedure, and states whether the call is a stream and
	// whether a client makes it.
	Spec connect.Spec

	// Peer is the other side. Its Addr is empty on a client of a stream.
	Peer connect.Peer

	// Header has the fields that the caller has sent, or will send. It is empty on a client of a stream.
	Header http.Header

	// Message is the request of a unary call, and nil for a stream.
	Message any
}

// Options are the options of a [Limit]. Denied and Failed return the error of the call;
// if they return nil, the call continues.
type Options = guard.Options[Call]

// Limit is a [connect.Interceptor] that limits calls. Make one with [Keys] or [Rules]. It
// is safe for concurrent use.
type Limit struct{ guard *guard.Middleware[Call] }

var _ connect.Interceptor = (*Limit)(nil)

// Keys returns an interceptor that applies the limit of l to each key. A call with an empty
// key ends with the code invalid_argument. At most one Options counts. The error is about
// a nil argument.
func Keys(l *weir.Limiter, key func(Call) string, options ...Options) (*Limit, error) {
	g, err := guard.Keys(l, key, options...)
	return newLimit(g, err)
}

// PerIP returns an interceptor that admits quota calls of each client in each window, and counts in this
// process's memory. A client is the address of the connection, as [PeerIP] returns it. Behind proxies, trusted
// are their addresses or CIDR blocks, and a client is the last address in X-Forwarded-For that is
// not one of theirs; other proxies and clients can write the header, and are not believed. PerIP panics
// if the quota, the window or a network is invalid. For a shared store, another key or other answers,
// use [Keys].
func PerIP(quota int64, window time.Duration, trusted ...string) *Limit {
	return Must(newLimit(guard.PerIP(quota, window, trusted, func(c Call) (peer string, forwarded []string) {
		return c.Peer.Addr, c.Header["X-Forwarded-For"]
	})))
}

// Rules returns an interceptor that decides by the rules of d: an engine, or a client of a
// service. A call with an empty value ends with the code invalid_argument. At most one
// Options counts. The error is about a nil argument.
func Rules(d guard.Decider, attributes func(Call, []weir.Attribute) []weir.Attribute, options ...Options) (*Limit, error) {
	g, err := guard.Rules(d, attributes, options...)
	return newLimit(g, err)
}

func newLimit(g *guard.Middleware[Call], err error) (*Limit, error) {
	if err != nil {
		return nil, err
	}
	return &Limit{g}, nil
}

// Must returns l, or panics with err. It is for limits that are written in the program.
func Must(l *Limit, err error) *Limit {
	if err != nil {
		panic(err)
	}
	return l
}

// PeerIP returns the address from which the connection of a call comes, as a key for [Keys]. An
// IPv6 address counts by its first 64 bits. Calls over a Unix socket have no address and thus no key.
func PeerIP(c Call) string { return guard.AddressKey(c.Peer.Addr) }

// Procedure returns the name of the procedure, as a key for [Keys]. It is useful for clients that
// limit what they send.
func Procedure(c Call) string { return c.Spec.Procedure }

// Header returns a function that returns a key: the value of a field that the caller sent. A call without it is an
// error. Anyone can send any value: verify it before.
func Header(name string) func(Call) string {
	return func(c Call) string { return c.Header.Get(name) }
}

// begin decides c. The returned function ends the holds of the call. It writes the limits into
// header, unless that is nil.
func (l *Limit) begin(c Call, header http.Header) (end func(), err error) {
	o := l.guard.Options()
	call, err := l.guard.Take(c.Context, c)
	if err != nil {
		if o.Failed != nil {
			return func() {}, o.Failed(c, err)
		}
		return nil, Failed(err)
	}
	defer l.guard.End(call) // what is held was detached
	limits := http.Header{}
	o.Headers.Set(limits, &call.Limits)
	for name, values := range limits {
		if header != nil {
			header[name] = values
		}
	}
	if !call.Allowed {
		if o.Denied != nil {
			err = o.Denied(c, call)
		} else {
			err = Denied(call, limits)
		}
	}
	return call.Detach(), err
}

// Denied returns the error of a call that is denied, with fields of the header of its
// answer. Its code is resource_exhausted, or unavailable if an outage policy denied because
// no limit could be asked.
func Denied(c *guard.Call, header http.Header) error {
	p := c.Problem()
	code := connect.CodeResourceExhausted
	if c.Limits.Degraded != "" && len(c.Limits.Policies) == 0 {
		code = connect.CodeUnavailable
	}
	e := connect.NewError(code, errors.New(p.Detail))
	for name, values := range header {
		e.Meta()[name] = values
	}
	failure := &errdetails.QuotaFailure{}
	for _, name := range p.Policies {
		failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{Subject: name, Description: "the limit " + name + " is exceeded"})
	}
	details := []proto.Message{failure}
	if c.Limits.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(c.Limits.RetryAfter)})
	}
	for _, m := range details {
		if d, err := connect.NewErrorDetail(m); err == nil {
			e.AddDetail(d)
		}
	}
	return e
}

// Failed returns the error of a call that could not be decided: invalid_argument for a
// call without a key, or with an empty attribute, and otherwise unavailable.
func Failed(err error) error {
	p := guard.ProblemOf(err)
	if p.Status == http.StatusBadRequest {
		return connect.NewError(connect.CodeInvalidArgument, errors.New(p.Detail))
	}
	return connect.NewError(connect.CodeUnavailable, errors.New(p.Detail))
}

// WrapUnary implements [connect.Interceptor].
func (l *Limit) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		limits := http.Header{}
		end, err := l.begin(Call{ctx, r.Spec(), r.Peer(), r.Header(), r.Any()}, limits)
		if err != nil {
			return nil, err
		}
		defer end()
		// A client can call within a handler, whose header is not that of the call.
		if info, ok := connect.CallInfoForHandlerContext(ctx); ok && !r.Spec().IsClient {
			maps.Copy(info.ResponseHeader(), limits) // of an error, too
		}
		return next(ctx, r)
	}
}

// WrapStreamingHandler implements [connect.Interceptor].
func (l *Limit) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, s connect.StreamingHandlerConn) error {
		end, err := l.begin(Call{ctx, s.Spec(), s.Peer(), s.RequestHeader(), nil}, s.ResponseHeader())
		if err != nil {
			return err
		}
		defer end()
		return next(ctx, s)
	}
}

// WrapStreamingClient implements [connect.Interceptor]. A stream that is denied is not
// opened: its methods return the error. What it holds is released when Receive returns an
// error, io.EOF included, when the stream is closed, or when its context ends.
func (l *Limit) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		end, err := l.begin(Call{ctx, spec, connect.Peer{}, http.Header{}, nil}, nil)
		if err != nil {
			return &deniedStream{spec, err, http.Header{}}
		}
		stop := context.AfterFunc(ctx, end)
		return &clientStream{next(ctx, spec), func() { stop(); end() }}
	}
}

// clientStream is a stream that ends its holds.
type clientStream struct {
	connect.StreamingClientConn
	end func()
}

// Receive implements [connect.StreamingClientConn].
func (s *clientStream) Receive(m any) error {
	err := s.StreamingClientConn.Receive(m)
	if err != nil {
		s.end()
	}
	return err
}

// CloseResponse implements [connect.StreamingClientConn].
func (s *clientStream) CloseResponse() error {
	defer s.end()
	return s.StreamingClientConn.CloseResponse()
}

// deniedStream is a stream that was denied. Nothing is sent.
type deniedStream struct {
	spec   connect.Spec
	err    error
	header http.Header // of the request
}

// Send returns io.EOF, so that the caller asks Receive for the error.
func (s *deniedStream) Send(any) error { return io.EOF }

// Receive returns the denial.
func (s *deniedStream) Receive(any) error { return s.err }

func (s *deniedStream) Spec() connect.Spec           { return s.spec }
func (s *deniedStream) Peer() connect.Peer           { return connect.Peer{} }
func (s *deniedStream) RequestHeader() http.Header   { return s.header }
func (s *deniedStream) CloseRequest() error          { return nil }
func (s *deniedStream) ResponseHeader() http.Header  { return http.Header{} }
func (s *deniedStream) ResponseTrailer() http.Header { return http.Header{} }
func (s *deniedStream) CloseResponse() error         { return nil }
