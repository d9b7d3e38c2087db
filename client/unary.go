package client

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/client/rpcwire"
	"github.com/weirhq/weir/client/sizes"
	"github.com/weirhq/weir/fault"
)

// methods are the methods of the service for the verbs.
var methods = [...]string{
	weir.Take: weirv1.WeirService_Take_FullMethodName, weir.Check: weirv1.WeirService_Check_FullMethodName,
	weir.Record: weirv1.WeirService_Record_FullMethodName, weir.Refund: weirv1.WeirService_Refund_FullMethodName,
	weir.Settle: weirv1.WeirService_Settle_FullMethodName, weir.Cancel: weirv1.WeirService_Cancel_FullMethodName,
	weir.Renew: weirv1.WeirService_Renew_FullMethodName,
}

// exchange is a call of gRPC: what is sent and what comes back. Later calls use its
// memory again. It implements [grpcmessage.Message].
type exchange struct {
	body     []byte
	decision *weir.Decision
}

// AppendMessage implements [grpcmessage.Message].
func (x *exchange) AppendMessage(b []byte) ([]byte, error) { return append(b, x.body...), nil }

// ReadMessage implements [grpcmessage.Message].
func (x *exchange) ReadMessage(b []byte) error { return rpcwire.ReadDecided(b, x.decision) }

// one makes a call of gRPC for one request.
func (c *Client) one(ctx context.Context, verb weir.Verb, r *weir.Request, d *weir.Decision) error {
	x := c.unary.Get().(*exchange)
	defer c.free(x)
	x.body, x.decision = rpcwire.AppendRequest(x.body[:0], verb, r), d
	if err := tooLarge(len(x.body)); err != nil {
		return err
	}
	return c.invoke(ctx, verb.String(), methods[verb], x, x)
}

// mostKept is the size, in bytes, of the largest request whose memory is used again.
const mostKept = 64 << 10

// free keeps x for another call, unless it is large.
func (c *Client) free(x *exchange) {
	x.decision = nil
	if cap(x.body) <= mostKept {
		c.unary.Put(x)
	}
}

// tooLarge returns the fault of a request of n bytes that is too large to be sent.
func tooLarge(n int) error {
	if n > maxRequest {
		return fault.Newf("attributes", "too large: the request has %d bytes, more than %d", n, maxRequest)
	}
	return nil
}

// maxRequest is the size, in bytes, of the largest request. Its message has a few more.
const maxRequest = sizes.Message - 64

// invoke makes a call of gRPC within the time that it has.
func (c *Client) invoke(ctx context.Context, what, method string, in, out any) error {
	return c.ask(ctx, what, func(ctx context.Context, o grpc.CallOption) error { return c.conn.Invoke(ctx, method, in, out, o) })
}

// ask makes a call of gRPC within the time that it has.
func (c *Client) ask(ctx context.Context, what string, call func(context.Context, grpc.CallOption) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	var from peer.Peer // without an address: nothing was sent
	err := call(ctx, grpc.Peer(&from))
	switch {
	case err == nil:
		return nil
	case c.alive.Err() != nil:
		return closed(what)
	}
	return errorOf(what, err, from.Addr == nil)
}
