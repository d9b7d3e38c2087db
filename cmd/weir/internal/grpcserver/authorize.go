package grpcserver

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// authorize returns the caller if it may make a call that needs scopes. The error is
// an [*access.Refusal].
func (s *Server) authorize(ctx context.Context, c *connection, need access.Scope) (*access.Holder, error) {
	if s.config.Auth == nil {
		return nil, nil
	}
	// The authenticator reads these fields of a request over HTTP, and no others.
	r := http.Request{Header: http.Header{}}
	if t := tokens(ctx); t != nil {
		r.Header["Authorization"] = t
	}
	if c != nil {
		r.RemoteAddr, r.TLS = c.RemoteAddr().String(), c.tlsState()
	}
	return s.config.Auth.Enter(&r, need)
}

// intercept asks callers of the services that this package adds itself for a
// token: of reflection, but not of health. It counts their messages. gRPC does not call it
// for methods that are registered as streams and stream neither way.
func (s *Server) intercept(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if strings.HasPrefix(info.FullMethod, "/grpc.reflection.") {
		ctx := stream.Context()
		if _, err := s.authorize(ctx, connectionOf(ctx), access.None); err != nil {
			return Error(err)
		}
	}
	if strings.HasPrefix(info.FullMethod, "/grpc.") {
		counted, end := track(stream, info.IsClientStream)
		defer end()
		stream = counted
	}
	return next(srv, stream)
}
