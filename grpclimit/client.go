package grpclimit

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/weirhq/weir/guard"
)

// unaryClient implements [grpc.UnaryClientInterceptor]. It does not send a call that is denied.
func (l *Limit) unaryClient(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, options ...grpc.CallOption) error {
	c := Call{ctx, method, request}
	call, err := l.take(c)
	if err != nil {
		return err
	}
	if call != nil {
		defer l.guard.End(call)
		if err := l.verdict(c, call); err != nil {
			return err
		}
	}
	return invoker(ctx, method, request, reply, cc, options...)
}

// streamClient implements [grpc.StreamClientInterceptor]. It does not open a stream that is denied. What
// a stream holds is released when RecvMsg returns an error, io.EOF included, or
// when its context ends.
func (l *Limit) streamClient(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	c := Call{ctx, method, nil}
	call, err := l.take(c)
	if err != nil {
		return nil, err
	}
	end := func() {}
	if call != nil {
		if err := l.verdict(c, call); err != nil {
			l.guard.End(call)
			return nil, err
		}
		end = l.detach(call)
	}
	stream, err := streamer(ctx, desc, cc, method, options...)
	if err != nil {
		end()
		return nil, err
	}
	s := &clientStream{ClientStream: stream, limit: l, method: method, single: !desc.ServerStreams, end: sync.OnceFunc(end)}
	context.AfterFunc(stream.Context(), s.end)
	return s, nil
}

// detach ends call now, except for its holds, which the returned function ends.
func (l *Limit) detach(call *guard.Call) (end func()) {
	end = call.Detach()
	l.guard.End(call)
	return end
}

// clientStream is a stream that ends its holds, and whose messages may count.
type clientStream struct {
	grpc.ClientStream
	limit  *Limit
	method string
	single bool // the server sends one message
	end    func()
}

// SendMsg decides a message, if messages count, and sends it.
func (s *clientStream) SendMsg(m any) error {
	if s.limit.messages {
		if err := s.limit.message(Call{s.Context(), s.method, m}); err != nil {
			return err
		}
	}
	return s.ClientStream.SendMsg(m)
}

// RecvMsg receives a message.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil || s.single {
		s.end()
	}
	return err
}
