package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/store"
)

// DoAll runs each item as [Client.Do] would, and writes its Decision or its Err. It
// sends up to 1000 items in one call. The batch is not one atomic step: each item is
// decided on its own. Items that share a key are decided in their order.
func (c *Client) DoAll(ctx context.Context, items []weir.Item) {
	b := batch{}
	for i := range items {
		it := &items[i]
		empty(&it.Decision)
		if it.Err = sendable(it.Verb, &it.Request); it.Err != nil {
			continue
		}
		if it.Err = c.begin(ctx, it.Verb.String()); it.Err != nil {
			continue
		}
		request := &weirv1.Request{}
		size := setRequest(request, it.Verb, &it.Request)
		if it.Err = tooLarge(request, size); it.Err != nil {
			continue
		}
		if len(b.items) == maxBatch || b.size+size > maxGroup && len(b.items) > 0 {
			c.run(ctx, &b)
		}
		b.items, b.size = append(b.items, it), b.size+size
		b.message.Requests = append(b.message.Requests, request)
	}
	if len(b.items) > 0 {
		c.run(ctx, &b)
	}
}

// batch has the items of one call.
type batch struct {
	items   []*weir.Item
	message weirv1.BatchRequest
	size    int // of the requests, in bytes
}

// read writes the answers into the items.
func (b *batch) read(answers []*weirv1.Answer) error {
	if len(answers) != len(b.items) {
		return &Error{call: "batch", code: codes.Internal, detail: fmt.Sprintf("%d answers to %d requests", len(answers), len(b.items))}
	}
	for i, it := range b.items {
		it.Err = readAnswer(answers[i], it.Verb, &it.Decision)
	}
	return nil
}

// readAnswer sets d to a decision, or returns the problem.
func readAnswer(a *weirv1.Answer, verb store.Verb, d *weir.Decision) error {
	if p := a.GetProblem(); p != nil {
		return problemError(verb.String(), p, false)
	}
	if err := readDecision(a.GetDecision(), d); err != nil {
		return unreadable(verb.String())
	}
	return nil
}

// run makes the call for b, and empties it. If the answers together are too large, nothing was
// counted, and run makes a separate call for each item.
func (c *Client) run(ctx context.Context, b *batch) {
	var out weirv1.BatchResponse
	err := c.invoke(ctx, "batch", weirv1.WeirService_Batch_FullMethodName, &b.message, &out)
	if err == nil {
		err = b.read(out.GetAnswers())
	}
	for _, it := range b.items {
		switch {
		case err == nil:
		case errors.Is(err, errLarge) && len(b.items) > 1:
			it.Err = c.Do(ctx, it.Verb, &it.Request, &it.Decision)
		default:
			it.Err = err
		}
	}
	clear(b.message.Requests)
	b.items, b.message.Requests, b.size = b.items[:0], b.message.Requests[:0], 0
}
