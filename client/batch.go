package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/client/rpcwire"
	"github.com/weirhq/weir/client/sizes"
)

// DoAll runs each item as [Client.Do] would, and writes its Decision or its Err. It
// sends up to 1000 items in one call. The batch is not one atomic step: each item is
// decided on its own. Items that share a key are decided in their order.
func (c *Client) DoAll(ctx context.Context, items []weir.Item) {
	b := batch{}
	for i := range items {
		it := &items[i]
		if it.Err = sendable(it.Verb, &it.Request); it.Err != nil {
			continue
		}
		if it.Err = c.begin(ctx, it.Verb.String()); it.Err != nil {
			continue
		}
		b.request = rpcwire.AppendRequest(b.request[:0], it.Verb, &it.Request)
		if it.Err = tooLarge(len(b.request)); it.Err != nil {
			continue
		}
		if len(b.items) == sizes.Batch || len(b.body)+len(b.request) > maxGroup && len(b.items) > 0 {
			c.run(ctx, &b)
		}
		b.add(it)
	}
	if len(b.items) > 0 {
		c.run(ctx, &b)
	}
}

// batch is items that travel in one call. It implements [grpcmessage.Message].
type batch struct {
	items         []*weir.Item
	body, request []byte
	answers       rpcwire.Answers
}

// add adds the item whose request is in b.request.
func (b *batch) add(it *weir.Item) {
	var start int
	b.body, start = rpcwire.OpenBatch(b.body)
	b.body = rpcwire.Shut(append(b.body, b.request...), start)
	b.items = append(b.items, it)
}

// AppendMessage implements [grpcmessage.Message].
func (b *batch) AppendMessage(to []byte) ([]byte, error) { return append(to, b.body...), nil }

// ReadMessage implements [grpcmessage.Message].
func (b *batch) ReadMessage(text []byte) error {
	if err := b.answers.ReadBatch(text); err != nil {
		return err
	}
	if len(b.answers.Answers) != len(b.items) {
		return fmt.Errorf("%d answers to %d requests", len(b.answers.Answers), len(b.items))
	}
	for i, it := range b.items {
		problem, err := rpcwire.ReadAnswer(b.answers.Answers[i], &it.Decision)
		switch {
		case err != nil:
			it.Err = &Error{Call: it.Verb.String(), Code: codes.Internal, Detail: "the answer cannot be read"}
		case problem != nil:
			it.Err = told(it.Verb.String(), problem, false)
		}
	}
	return nil
}

// run makes the call for b, and empties it. If the answers together are too large,
// which counts nothing, each item gets a call of its own.
func (c *Client) run(ctx context.Context, b *batch) {
	err := c.invoke(ctx, "batch", weirv1.WeirService_Batch_FullMethodName, b, b)
	for _, it := range b.items {
		switch {
		case err == nil:
		case errors.Is(err, weir.ErrLarge) && len(b.items) > 1:
			it.Err = c.Do(ctx, it.Verb, &it.Request, &it.Decision)
		default:
			it.Err = err
		}
	}
	b.items, b.body = b.items[:0], b.body[:0]
}
