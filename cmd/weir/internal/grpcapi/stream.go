package grpcapi

import (
	"errors"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
)

// Resource limits of one stream, whose [access.StreamBytes] are for the messages that wait.
const (
	waiting = 8 // messages

	// smallWaiting is the maximum size, in bytes, of a message within the reservation of the
	// stream.
	smallWaiting = access.StreamBytes / waiting

	// spareItems is the maximum number of requests decided at the same time whose memory is kept for the next
	// messages of any stream.
	spareItems = 128
)

// stream serves the method Decide. It decides messages in their order, and answers every message that
// it has decided before the stream ends.
func (a *API) stream(c *grpcserver.Call) error {
	s := &stream{api: a, call: c, in: make(chan *group, waiting), over: make(chan struct{})}
	return s.serve()
}

// stream is one call of Decide.
type stream struct {
	api    *API
	call   *grpcserver.Call
	now    []*group // being decided
	items  *[]weir.Item
	memory memory

	in   chan *group   // received; receive closes it
	over chan struct{} // closed when nothing more is read from in
}

// serve decides the messages together that wait at the same time, so that their requests
// are one batch. Meanwhile another goroutine receives the next ones.
func (s *stream) serve() error {
	defer s.leave()
	ended := make(chan error, 1)
	go func() { ended <- s.receive() }() // it ends soon after the call has ended, at the latest
	for {
		select {
		case g, ok := <-s.in:
			if !ok {
				return <-ended
			}
			if err := s.answer(g); err != nil {
				return err
			}
		case <-s.call.Leaving():
			select {
			case g, ok := <-s.in:
				if !ok {
					return <-ended
				}
				if err := s.answer(g); err != nil {
					return err
				}
			default:
			}
			return grpcserver.ErrStopping
		}
	}
}

// receive receives messages until the client sends no more, or the call ends.
func (s *stream) receive() error {
	defer close(s.in)
	for {
		g, err := receive(s.call, false)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		select {
		case s.in <- g:
		case <-s.over:
			g.memory.Free()
		}
		select {
		case <-s.over:
			s.discard()
			return nil
		default:
		}
	}
}

// leave makes receive end. It drops messages that were received and not decided.
func (s *stream) leave() {
	close(s.over)
	s.discard()
}

func (s *stream) discard() {
	for {
		select {
		case g, ok := <-s.in:
			if !ok {
				return
			}
			g.memory.Free()
		default:
			return
		}
	}
}

// answer decides first and the messages that wait after it, and sends the answers.
func (s *stream) answer(first *group) error {
	s.now = append(s.now[:0], first)
	for n := max(len(first.asks), 1); ; {
		var g *group
		select {
		case g = <-s.in:
		default:
		}
		if g == nil {
			break
		}
		s.now = append(s.now, g)
		if n += max(len(g.asks), 1); n >= sizes.Batch {
			break
		}
	}
	defer s.drop()
	if err := s.decide(); err != nil {
		return err
	}
	for _, g := range s.now {
		if err := s.call.SendMsg(g.message()); err != nil {
			return err
		}
	}
	return nil
}

// decide decides the messages in s.now. Its error ends the stream.
func (s *stream) decide() error {
	if err := s.call.Again(access.None); err != nil {
		return err
	}
	ns, err := s.call.Namespace(s.api.namespaces)
	if err != nil {
		return err
	}
	if err := s.call.Begin(); err != nil {
		s.fail(err)
		return nil
	}
	defer s.call.End()
	s.items = s.api.items.Get().(*[]weir.Item)
	items := *s.items
	for _, g := range s.now {
		if g.err == nil {
			g.err = g.late()
		}
		if g.err == nil {
			items = g.appendItems(s.call.Caller, items)
		}
	}
	*s.items, s.memory = items, memory{Reservation: s.call.Reservation()}
	err = s.run(ns, items, s.now)
	if err != nil && len(s.now) > 1 {
		s.oneByOne(ns)
		return nil
	}
	s.fail(err)
	for _, g := range s.now {
		if g.err == nil {
			items = g.cutItems(items)
		}
	}
	return nil
}

// oneByOne decides each message by itself after they could not be decided together, so that a message
// whose answer is too large, or that has waited for too long, does not affect the others.
func (s *stream) oneByOne(ns *namespace.Namespace) {
	items := *s.items
	for i, g := range s.now {
		if g.err != nil {
			continue
		}
		items = g.cutItems(items)
		if g.err = g.late(); g.err == nil {
			g.err = s.run(ns, g.items, s.now[i:i+1])
		}
	}
}

// run decides items, the requests of some messages. If one of these is late before the first item is counted, none is:
// large batches wait for others, and planning them can take seconds.
func (s *stream) run(ns *namespace.Namespace, items []weir.Item, of []*group) error {
	return s.api.run(s.call.Context(), ns, s.call.Caller, items, func(size run.Size) error {
		for _, g := range of {
			if err := g.late(); err != nil && g.err == nil {
				return err
			}
		}
		return s.memory.admit(size)
	})
}

// fail answers all messages that have no answer with err, if that is not nil.
func (s *stream) fail(err error) {
	for _, g := range s.now {
		if g.err == nil {
			g.err = err
		}
	}
}

// drop drops what was decided.
func (s *stream) drop() {
	s.memory.Free()
	if s.items != nil {
		*s.items = answer.Spare(*s.items, spareItems)
		s.api.items.Put(s.items)
		s.items = nil
	}
	for i, g := range s.now {
		g.memory.Free()
		s.now[i] = nil
	}
}

// maxStreamRequest is the maximum size of the request of a method that only the service streams, in bytes.
const maxStreamRequest = 8 << 10

// receiveOne receives the request of a method that only the service streams.
func receiveOne(c *grpcserver.Call, in proto.Message) error {
	received := grpcserver.Received{Message: in, Admit: func(b []byte) error {
		if len(b) > maxStreamRequest {
			return fault.Newf("request", "%d bytes: want at most %d", len(b), maxStreamRequest)
		}
		return nil
	}}
	if err := c.RecvMsg(&received); err != nil {
		return err
	}
	return received.Err
}
