package grpcapi

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
)

// group is one message with several requests.
type group struct {
	batch    bool // of the method Batch, not of a stream
	id       uint64
	asks     []ask
	errs     []error   // of asks that are not decided
	err      error     // of the whole message
	deadline time.Time // zero: none
	items    []weir.Item
	memory   memory
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
	attributes := 0 // those of a request with too many are decoded, too, so that it gets an answer of its own
	for request := range grpcserver.Submessages(b, number) {
		attributes += grpcserver.Count(request, requestAttributes)
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

// receive receives a message of the method Batch, or of a stream. An error of the message is the err of the group,
// and one of the call is returned.
func receive(c *grpcserver.Call, batch bool) (*group, error) {
	g := &group{batch: batch, memory: memory{Reservation: c.Reservation()}}
	var whole weirv1.BatchRequest
	var message weirv1.DecideRequest
	in := grpcserver.Received{Message: &message, Admit: g.admitMessage}
	if batch {
		in.Message = &whole
	}
	if err := c.RecvMsg(&in); err != nil {
		return nil, err
	}
	requests := message.Requests
	if batch {
		requests = whole.Requests
	}
	if g.err = in.Err; g.err == nil {
		g.err = g.read(&message, requests)
	}
	if g.err != nil {
		g.memory.Free()
	}
	return g, nil
}

// read reads the requests of a message, which is empty for a batch.
func (g *group) read(m *weirv1.DecideRequest, requests []*weirv1.Request) error {
	g.id = max(g.id, m.Id)
	if m.Timeout != nil {
		g.deadline = time.Now().Add(m.Timeout.AsDuration())
	}
	switch n := len(requests); {
	case n > sizes.Batch:
		return tooManyRequests()
	case n > fewRequests:
		if err := g.memory.Reserve(int64(n) * itemBytes); err != nil {
			return err
		}
	}
	if !g.batch {
		if err := g.reserveDecoded(requests); err != nil {
			return err
		}
	}
	g.asks, g.errs = make([]ask, len(requests)), make([]error, 0, len(requests))
	for i, in := range requests {
		g.asks[i] = readAny(in)
	}
	return nil
}

// reserveDecoded reserves the memory of the requests of a message of a stream, which may wait, if it does not
// fit into the reservation of the stream: an attribute can take seven bytes in the message, and many times as
// many here.
func (g *group) reserveDecoded(requests []*weirv1.Request) error {
	const askBytes, attributeBytes = 256, 64
	n := int64(len(requests)) * askBytes
	for _, r := range requests {
		n += int64(len(r.Attributes)) * attributeBytes
	}
	if n <= smallWaiting {
		return nil
	}
	return g.memory.Reserve(n)
}

// The memory of a batch. itemBytes is for each request, without its body and the text of its answer.
// A batch of up to fewRequests fits into the reservation of a stream.
const (
	itemBytes   = 2 << 10
	fewRequests = 32
)

// appendItems appends to items the requests of g that its caller may make and that have no fault. errs has
// the errors of the others.
func (g *group) appendItems(caller *access.Holder, items []weir.Item) []weir.Item {
	items = slices.Grow(items, len(g.asks))
	for i := range g.asks {
		ask := &g.asks[i]
		err := ask.fault
		if err == nil {
			err = caller.May(need(ask.sent))
		}
		g.errs = append(g.errs, err)
		if err != nil {
			continue
		}
		items = items[:len(items)+1] // reuses the memory of a decision
		it := &items[len(items)-1]
		it.Verb, it.Request, it.Err = ask.verb, ask.request, nil
	}
	return items
}

// cutItems makes the first of items, which appendItems has appended for g, the items of g. It returns the rest.
func (g *group) cutItems(items []weir.Item) []weir.Item {
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
	answers, memory := make([]*weirv1.Answer, len(g.errs)), make([]answered, len(g.errs))
	next := 0
	for i, err := range g.errs {
		if err != nil {
			answers[i] = memory[i].set(&weir.Item{Err: err})
			continue
		}
		answers[i] = memory[i].set(&g.items[next])
		next++
	}
	return answers
}

// late returns the error of a message that has waited for longer than its timeout, or nil.
func (g *group) late() error {
	if g.deadline.IsZero() || time.Now().Before(g.deadline) {
		return nil
	}
	return context.DeadlineExceeded
}

// message returns the answer to a message of a stream.
func (g *group) message() *weirv1.DecideResponse {
	if g.err != nil {
		return &weirv1.DecideResponse{Id: g.id, Problem: problemOf(g.err)}
	}
	return &weirv1.DecideResponse{Id: g.id, Answers: g.answer()}
}

// run decides items. admit admits the memory of all their answers, before the first is counted.
func (a *API) run(ctx context.Context, ns *namespace.Namespace, caller *access.Holder, items []weir.Item, admit func(run.Size) error) (err error) {
	if len(items) == 0 {
		return nil
	}
	if _, err = ns.Run(ctx, items, run.Options{Caller: caller.Token(), Admit: admit}); len(items) == 1 { // the error is that of the request, not of the batch
		items[0].Err, err = err, nil
	}
	return err
}

// batch serves the method Batch.
func (a *API) batch(c *grpcserver.Call) error {
	ns, err := c.Namespace(a.namespaces)
	if err != nil {
		return err
	}
	g, err := receive(c, true)
	if err != nil {
		return err
	}
	defer g.memory.Free()
	if g.err != nil {
		return g.err
	}
	if err := c.Begin(); err != nil {
		return err
	}
	items := g.appendItems(c.Caller, make([]weir.Item, 0, len(g.asks)))
	err = a.run(c.Context(), ns, c.Caller, items, g.memory.admit)
	c.End()
	if err != nil {
		return err
	}
	g.cutItems(items)
	return c.SendMsg(&weirv1.BatchResponse{Answers: g.answer()})
}
