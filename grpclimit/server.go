package grpclimit

import (
	"context"

	"google.golang.org/grpc"
)

// unaryServer implements [grpc.UnaryServerInterceptor].
func (l *Limit) unaryServer(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c := Call{ctx, info.FullMethod, request}
	call, err := l.take(c)
	if err != nil {
		return nil, err
	}
	if call != nil {
		defer l.guard.End(call)
		_ = grpc.SetHeader(ctx, l.header(call)) // without a stream there is no header
		if err := l.verdict(c, call); err != nil {
			return nil, err
		}
	}
	return handler(ctx, request)
}

// streamServer implements [grpc.StreamServerInterceptor].
func (l *Limit) streamServer(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c := Call{stream.Context(), info.FullMethod, nil}
	call, err := l.take(c)
	if err != nil {
		return err
	}
	if call != nil {
		defer l.guard.End(call)
		_ = stream.SetHeader(l.header(call)) // an earlier handler has sent it
		if err := l.verdict(c, call); err != nil {
			return err
		}
	}
	if l.messages {
		stream = &serverStream{stream, l, info.FullMethod}
	}
	return handler(server, stream)
}

// serverStream is a stream whose messages count.
type serverStream struct {
	grpc.ServerStream
	limit  *Limit
	method string
}

// RecvMsg receives a message and decides it. A message that is denied ends the stream,
// if the handler returns the error.
func (s *serverStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.limit.message(Call{s.Context(), s.method, m})
}

// message decides one message. Its holds end at once, because a message has no duration.
func (l *Limit) message(c Call) error {
	call, err := l.take(c)
	if err != nil || call == nil {
		return err
	}
	defer l.guard.End(call)
	return l.verdict(c, call)
}
