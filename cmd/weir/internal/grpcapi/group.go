package grpcapi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
)

// group is one message with several requests, and its answers. Streams reuse its memory.
type group struct {
	batch    bool // of the method Batch, not of a stream
	in       grpcserver.Received
	requests []*weirv1.Request
	id       uint64
	attrs    []weir.Attribute
	asks     []ask
	errs     []error   // of asks that are not decided
	err      error     // of the whole message
	deadline time.Time // zero: none
	items    []weir.Item
	replies  []*reply
	answers  []*weirv1.Answer // of replies
	memory   memory
}

// newGroup returns a group for messages of a method.
func newGroup(batch bool) *group {
	g := &group{batch: batch}
	g.in.Admit = g.admitMessage
	if batch {
		g.in.Message = &weirv1.BatchRequest{}
	} else {
		g.in.Message = &weirv1.DecideRequest{}
	}
	return g
}

// admitMessage reserves the memory of a large message before it is decoded. Messages of a
// stream, up to a size, are within the reservation of the stream.
func (g *group) admitMessage(b []byte) error {
	small, number := smallWaiting, protowire.Number(decideRequests)
	if g.batch {
		small, number = smallBody, batchRequests
	}
	if len(b) <= small {
		return nil
	}
	g.id = grpcserver.Uint(b, decideID) // for the answer, if b is not decoded
	if grpcserver.Count(b, number) > sizes.Batch {
		return tooManyRequests()
	}
	i, attributes := 0, 0
	for request := range grpcserver.Submessages(b, number) {
		n := grpcserver.Count(request, requestAttributes)
		if n > sizes.Attributes {
			return tooManyAttributes(fmt.Sprintf("requests[%d].attributes", i))
		}
		i, attributes = i+1, attributes+n
	}
	return g.memory.decoded(len(b), attributes)
}

// Numbers of fields that are read before a large message is decoded.
const (
	requestAttributes = 1
	batchRequests     = 1
	decideID          = 1
	decideRequests    = 2
)

func tooManyRequests() error { return fault.Newf("requests", "more than %d", sizes.Batch) }

// receive receives a message. It sets g.err to the error of the whole message, and returns the error
// of the call.
func (g *group) receive(c *grpcserver.Call) error {
	g.memory.Resources = c.Resources()
	g.id, g.attrs, g.asks, g.errs, g.deadline = 0, g.attrs[:0], g.asks[:0], g.errs[:0], time.Time{}
	if err := c.RecvMsg(&g.in); err != nil {
		return err
	}
	if g.err = g.in.Err; g.err != nil {
		return nil //nolint:nilerr // g.err is not one of the call
	}
	switch in := g.in.Message.(type) {
	case *weirv1.BatchRequest:
		g.requests = in.Requests
	case *weirv1.DecideRequest:
		g.requests, g.id = in.Requests, in.Id
		if d := in.Timeout; d != nil {
			g.deadline = time.Now().Add(d.AsDuration())
		}
	}
	switch n := len(g.requests); {
	case n > sizes.Batch:
		g.err = tooManyRequests()
		return nil
	case n > fewRequests:
		if g.err = g.memory.Reserve(int64(n) * itemBytes); g.err != nil {
			return nil //nolint:nilerr // g.err is not one of the call
		}
	}
	for _, in := range g.requests {
		g.asks = append(g.asks, ask{})
		g.attrs = g.asks[len(g.asks)-1].readAny(in, g.attrs)
	}
	return nil
}

// shed drops the requests of g, which has an error, because no memory is reserved for them.
func (g *group) shed() {
	g.memory.free()
	proto.Reset(g.in.Message)
	g.requests, g.attrs, g.asks = nil, nil, nil
}

// The memory of a batch. itemBytes is for each request, without its body and the text of its answer.
// A batch of up to fewRequests fits into the reservation of a stream.
const (
	itemBytes   = 2 << 10
	fewRequests = 32
)

// maxOneByOne is the maximum number of requests that are decided one by one if nothing waits for a
// store. For more, the size of all answers is computed before the first is counted.
const maxOneByOne = 128

// admitted finds the requests of g that its caller may not make, or that are wrong.
// The others are appended to items.
func (g *group) admitted(caller *access.Holder, items []weir.Item) []weir.Item {
	for i := range g.asks {
		ask := &g.asks[i]
		var err error
		if ask.fault != nil {
			err = ask.fault
		} else {
			err = caller.May(need(ask.sent))
		}
		g.errs = append(g.errs, err)
		if err != nil {
			continue
		}
		if len(items) < cap(items) {
			items = items[:len(items)+1]
		} else {
			items = append(items, weir.Item{})
		}
		it := &items[len(items)-1]
		it.Verb, it.Request, it.Err = ask.verb, ask.request, nil
	}
	return items
}

// given takes the answers of g from the start of items, and returns the rest.
func (g *group) given(items []weir.Item) []weir.Item {
	n := 0
	for i := range g.errs {
		if g.errs[i] == nil {
			n++
		}
	}
	g.items = items[:n]
	return items[n:]
}

// answer returns the answers to the requests of g.
func (g *group) answer() []*weirv1.Answer {
	g.answers = g.answers[:0]
	next := 0
	for i, err := range g.errs {
		if i == len(g.replies) {
			g.replies = append(g.replies, new(reply))
		}
		r := g.replies[i]
		g.answers = append(g.answers, &r.Answer)
		if err == nil {
			it := &g.items[next]
			next++
			if err = it.Err; err == nil {
				r.setDecision(&it.Decision)
				continue
			}
		}
		r.setProblem(err)
	}
	return g.answers
}

// message returns the answer to a message of a stream.
func (g *group) message() *weirv1.DecideResponse {
	if g.err != nil {
		return &weirv1.DecideResponse{Id: g.id, Problem: problemOf(g.err)}
	}
	return &weirv1.DecideResponse{Id: g.id, Answers: g.answer()}
}

// free drops what g refers to.
func (g *group) free() {
	g.memory.free()
	proto.Reset(g.in.Message)
	clear(g.attrs)
	clear(g.asks)
	clear(g.errs)
	g.items, g.requests = nil, nil
}

// isSmall reports whether the memory of g may be reused for later messages. The spare memory of a
// stream stays within its reservation.
func (g *group) isSmall() bool {
	return max(cap(g.asks), cap(g.errs), len(g.replies)) <= 2*fewRequests && cap(g.attrs) <= 8*fewRequests
}

// run decides items. admit admits the memory of their answers, together or each.
func (a *API) run(ctx context.Context, space *namespace.Namespace, items []weir.Item, admit func(run.Size) error) (err error) {
	switch n := len(items); {
	case n == 0:
		return nil
	case n == 1 || !a.shared && n <= maxOneByOne:
		for i := range items {
			_, items[i].Err = space.Run(ctx, items[i:i+1], run.Options{Admit: admit})
		}
		return nil
	case n > fewRequests:
		a.planning <- struct{}{}
		planned := sync.OnceFunc(func() { <-a.planning })
		defer planned()
		_, err = space.Run(ctx, items, run.Options{Admit: func(s run.Size) error { planned(); return admit(s) }})
		return err
	}
	_, err = space.Run(ctx, items, run.Options{Admit: admit})
	return err
}

// batch serves the method Batch.
func (a *API) batch(c *grpcserver.Call) error {
	g := newGroup(true)
	defer g.free()
	space, err := c.Namespace(a.spaces)
	if err != nil {
		return err
	}
	if err := g.receive(c); err != nil {
		return err
	}
	if g.err != nil {
		return g.err
	}
	if err := c.Begin(); err != nil {
		return err
	}
	items := g.admitted(c.Caller, make([]weir.Item, 0, len(g.asks)))
	err = a.run(c.Context(), space, items, g.memory.admit)
	c.End()
	if err != nil {
		return err
	}
	g.given(items)
	return c.SendMsg(&weirv1.BatchResponse{Answers: g.answer()})
}
