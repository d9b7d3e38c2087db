package client

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store"
)

// methods are the methods of the service for the verbs.
var methods = [...]string{
	store.Take: weirv1.WeirService_Take_FullMethodName, store.Check: weirv1.WeirService_Check_FullMethodName,
	store.Record: weirv1.WeirService_Record_FullMethodName, store.Refund: weirv1.WeirService_Refund_FullMethodName,
	store.Settle: weirv1.WeirService_Settle_FullMethodName, store.Cancel: weirv1.WeirService_Cancel_FullMethodName,
	store.Renew: weirv1.WeirService_Renew_FullMethodName,
}

// exchange has the messages of a gRPC call. Later calls reuse its memory. The
// requests and the answers of all verbs have the fields of these two messages, with the
// same numbers.
type exchange struct {
	request weirv1.Request
	answer  weirv1.TakeResponse
}

// one makes a call of gRPC for one request.
func (c *Client) one(ctx context.Context, verb store.Verb, r *weir.Request, d *weir.Decision) error {
	x := c.unary.Get().(*exchange)
	n := setRequest(&x.request, verb, r)
	if n <= maxKept {
		defer c.unary.Put(x)
	}
	if err := tooLarge(&x.request, n); err != nil {
		return err
	}
	if err := c.invoke(ctx, verb.String(), methods[verb], &x.request, &x.answer); err != nil {
		return err
	}
	if err := readDecision(x.answer.Decision, d); err != nil {
		return unreadable(verb.String())
	}
	return nil
}

// unreadable returns the error of an answer that is not valid.
func unreadable(call string) error {
	return &Error{call: call, code: codes.Internal, detail: "the answer cannot be read"}
}

// maxKept is the maximum size, in bytes, of a request whose memory is reused.
const maxKept = 64 << 10

// tooLarge returns the fault of a request of n bytes that is too large to be sent, or nil.
func tooLarge(m *weirv1.Request, n int) error {
	switch {
	case len(m.Attributes) > maxAttributes:
		return fault.Newf("attributes", "more than %d attributes", maxAttributes)
	case n > maxRequest:
		return fault.Newf("attributes", "too large: the request has %d bytes, more than %d", n, maxRequest)
	}
	return nil
}

// maxRequest is the maximum size of a request, in bytes. Its message has a few more.
const maxRequest = maxMessage - 64

// invoke makes a gRPC call within its time-out.
func (c *Client) invoke(ctx context.Context, what, method string, in, out proto.Message) error {
	return c.ask(ctx, what, func(ctx context.Context, o grpc.CallOption) error { return c.conn.Invoke(ctx, method, in, out, o) })
}

// ask makes a gRPC call within its time-out.
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
