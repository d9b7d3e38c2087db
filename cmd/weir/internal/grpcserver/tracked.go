package grpcserver

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
)

// tracked is the stream of a call whose messages its connection counts.
type tracked struct {
	grpc.ServerStream
	conn  *connection
	began time.Time
	waits bool // the call waits for its only message

	// admitted reports whether the caller may make the call. It may give the call up then: a proxy does so when its own client
	// is gone, and if the connection was read slowly, all clients of the proxy would have no decisions.
	admitted bool
}

// enqueue counts a call that its connection has read, before it gets a goroutine.
func enqueue(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if c := connectionOf(ctx); c != nil {
		c.queued.Add(1)
	}
	return ctx, nil
}

// track returns stream with its messages counted, and a function that ends the call. many reports whether the
// client may send several messages.
func track(stream grpc.ServerStream, many bool) (_ grpc.ServerStream, end func()) {
	c := connectionOf(stream.Context())
	if c == nil {
		return stream, func() {}
	}
	t := &tracked{ServerStream: stream, conn: c, began: time.Now(), waits: !many}
	c.begin()
	if many { // it may wait for long
		c.receive(callBytes)
	} else if c.waiting.Add(1) == 1 {
		c.received.Store(t.began.UnixNano())
	}
	return t, t.end
}

// RecvMsg implements [grpc.ServerStream].
func (t *tracked) RecvMsg(m any) error {
	err := t.ServerStream.RecvMsg(m)
	n := int64(0)
	if err == nil {
		n = overhead + wireSize(m)
	}
	t.received(n)
	return err
}

// wireSize returns how many bytes have arrived for m.
func wireSize(m any) int64 {
	switch m := m.(type) {
	case *Received:
		return int64(m.size)
	case proto.Message:
		return int64(proto.Size(m))
	}
	return 0
}

// received counts n bytes of messages as received.
func (t *tracked) received(n int64) {
	if t.waits {
		t.waits = false
		t.conn.waiting.Add(-1)
		n += callBytes
	}
	t.conn.receive(n)
}

// end ends the call.
func (t *tracked) end() {
	if t.waits {
		t.received(0)
	}
	t.conn.end(t.began, !t.admitted && isGivenUp(t.Context()))
}

// isGivenUp reports whether a call was given up before its deadline.
func isGivenUp(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// SendMsg implements [grpc.ServerStream].
func (t *tracked) SendMsg(m any) error { return t.ServerStream.SendMsg(outgoing(m, t.conn)) }

// interceptUnary counts calls of gRPC's own services.
func interceptUnary(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	c := connectionOf(ctx)
	if c == nil {
		return next(ctx, in)
	}
	c.begin()
	began := time.Now()
	defer func() { c.end(began, isGivenUp(ctx)) }()
	c.receive(callBytes + overhead + wireSize(in))
	out, err := next(ctx, in)
	return outgoing(out, c), err
}

// unknown answers calls of methods that the server does not have. They are counted, too.
func unknown(_ any, stream grpc.ServerStream) error {
	if _, ok := stream.(*tracked); !ok {
		_, end := track(stream, false)
		defer end()
	}
	name, _ := grpc.MethodFromServerStream(stream)
	return status.Errorf(codes.Unimplemented, "unknown method %s", name)
}
