package grpcapi

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client/rpcwire"
	"github.com/weirhq/weir/client/sizes"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/fault"
)

// group is one message with several requests, and its answers. It implements
// [grpcserver.Message]. Strings of the requests are views of its body.
type group struct {
	batch    bool // of the method Batch, not of a stream
	body     []byte
	read     rpcwire.Group
	attrs    []weir.Attribute
	asks     []rpcwire.Ask
	errs     []error   // of asks that are not decided
	err      error     // of the whole message
	deadline time.Time // zero: none
	items    []weir.Item
	memory   memory
}

// ReadMessage implements [grpcserver.Message].
func (g *group) ReadMessage(b []byte) error {
	g.body = append(g.body[:0], b...)
	g.deadline = time.Time{}
	g.attrs, g.asks, g.errs = g.attrs[:0], g.asks[:0], g.errs[:0]
	g.err = g.readRequests()
	if d := g.read.Timeout; d != 0 {
		g.deadline = time.Now().Add(d)
	}
	return nil
}

// readRequests reads the requests in the body. The error is a [*fault.Fault] of the
// whole message.
func (g *group) readRequests() (err error) {
	if g.batch {
		err = g.read.ReadBatch(g.body)
	} else {
		err = g.read.ReadDecide(g.body)
	}
	switch {
	case err != nil:
		return malformed()
	case len(g.read.Requests) > sizes.Batch:
		return fault.Newf("requests", "more than %d", sizes.Batch)
	}
	for _, text := range g.read.Requests {
		g.asks = append(g.asks, rpcwire.Ask{})
		if g.attrs, err = g.asks[len(g.asks)-1].ReadRequest(text, weir.Take, false, g.attrs); err != nil {
			return malformed()
		}
	}
	return nil
}

// reserve reserves the memory of a large message.
func (g *group) reserve(b *access.Bounds) error {
	g.memory.bounds = b
	small := smallBody
	if !g.batch {
		small = smallWaiting
	}
	if err := g.memory.body(len(g.body), small); err != nil {
		return err
	}
	if n := len(g.asks); n > fewRequests {
		return g.memory.reserve(int64(n) * itemBytes)
	}
	return nil
}

// shed drops the requests of g, which has an error: nothing is reserved for them.
func (g *group) shed() { g.body, g.attrs, g.asks, g.read.Requests = nil, nil, nil, nil }

// What a batch takes in memory. itemBytes is for each request, beside its body and the
// text of its answer. A batch of up to fewRequests takes no more than the standing
// reservation of a stream.
const (
	itemBytes   = 2 << 10
	fewRequests = 32
)

// mostAlone is the most requests that are decided one by one where nothing waits for a
// store. With more, the size of all answers is known before the first is counted.
const mostAlone = 128

// admitted finds the requests of g that its caller may not make, or that are wrong.
// The others are appended to items.
func (g *group) admitted(caller *access.Holder, items []weir.Item) []weir.Item {
	for i := range g.asks {
		ask := &g.asks[i]
		var err error
		if ask.Fault != nil {
			err = ask.Fault
		} else {
			err = caller.May(need(ask.Sent))
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
		it.Verb, it.Request, it.Err = ask.Verb, ask.Request, nil
	}
	return items
}

// given takes the answers of g from the front of items, and returns the rest.
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

// AppendMessage implements [grpcserver.Message].
func (g *group) AppendMessage(b []byte) ([]byte, error) {
	decision, problem := rpcwire.AppendDecideDecision, rpcwire.AppendDecideProblem
	if g.batch {
		decision, problem = rpcwire.AppendBatchDecision, rpcwire.AppendBatchProblem
	} else {
		b = rpcwire.AppendID(b, g.read.ID)
	}
	errs := g.errs
	if g.err != nil {
		b, errs = rpcwire.AppendProblem(b, problemOf(g.err)), nil
	}
	next := 0
	for _, err := range errs {
		if err == nil {
			it := &g.items[next]
			next++
			if err = it.Err; err == nil {
				b = decision(b, &it.Decision)
				continue
			}
		}
		b = problem(b, problemOf(err))
	}
	return b, nil
}

// problemOf returns err as it is told beside other answers.
func problemOf(err error) *rpcwire.Problem {
	f := grpcserver.FailureOf(err)
	return &rpcwire.Problem{Code: int32(f.Code), Detail: f.Detail, Field: f.Field, Reason: f.Reason, RetryAfter: f.RetryAfter} //nolint:gosec // codes are small
}

// free drops what g refers to.
func (g *group) free() {
	g.memory.free()
	clear(g.attrs)
	clear(g.asks)
	clear(g.errs)
	clear(g.read.Requests)
	g.items = nil
}

// isSmall reports whether the memory of g may be used for later messages. What a stream
// keeps stays within its reservation.
func (g *group) isSmall() bool {
	return cap(g.body) <= smallWaiting && max(cap(g.asks), cap(g.errs), cap(g.read.Requests)) <= 2*fewRequests && cap(g.attrs) <= 8*fewRequests
}

// run decides items. admit admits the memory of their answers, together or each.
func (a *API) run(ctx context.Context, engine *weir.Engine, items []weir.Item, admit func(weir.Size) error) error {
	switch n := len(items); {
	case n == 0:
		return nil
	case n == 1 || !a.shared && n <= mostAlone:
		for i := range items {
			it := &items[i]
			it.Err = engine.DoIf(ctx, it.Verb, &it.Request, &it.Decision, admit)
		}
		return nil
	case n > fewRequests:
		a.planning <- struct{}{}
		planned := sync.OnceFunc(func() { <-a.planning })
		defer planned()
		return engine.DoAllIf(ctx, items, func(s weir.Size) error { planned(); return admit(s) })
	}
	return engine.DoAllIf(ctx, items, admit)
}

// batch serves the method Batch.
func (a *API) batch(c *grpcserver.Call) error {
	g := &group{batch: true}
	defer g.free()
	space, err := c.Namespace(a.spaces)
	if err != nil {
		return err
	}
	if err := c.RecvMsg(g); err != nil {
		return err
	}
	if g.err != nil {
		return g.err
	}
	if err := g.reserve(c.Bounds()); err != nil {
		return err
	}
	if err := c.Begin(); err != nil {
		return err
	}
	items := g.admitted(c.Caller, make([]weir.Item, 0, len(g.asks)))
	err = a.run(c.Context(), space.Engine(), items, g.memory.admit)
	c.End()
	if err != nil {
		return err
	}
	g.given(items)
	return c.SendMsg(g)
}
