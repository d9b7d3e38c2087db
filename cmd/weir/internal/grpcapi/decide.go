package grpcapi

import (
	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// decide returns the handler of the method for a verb.
func (a *API) decide(verb store.Verb) func(*grpcserver.Call) error {
	return func(c *grpcserver.Call) error {
		m := memory{Reservation: c.Reservation()}
		defer m.Free()
		ns, err := c.Namespace(a.namespaces)
		if err != nil {
			return err
		}
		request := &weirv1.Request{}
		in := grpcserver.Received{Message: request, Admit: m.admitRequest}
		if err := c.RecvMsg(&in); err != nil {
			return err
		}
		if in.Err != nil {
			return in.Err
		}
		ask := readAsk(request, verb)
		if ask.fault != nil {
			return ask.fault
		}
		if err := c.Begin(); err != nil {
			return err
		}
		items := []weir.Item{{Verb: ask.verb, Request: ask.request}}
		_, err = ns.Run(c.Context(), items, run.Options{Caller: c.Caller.Token(), Admit: m.admit})
		c.End()
		if err != nil {
			return err
		}
		return c.SendMsg(&weirv1.TakeResponse{Decision: decisionOf(&items[0].Decision)})
	}
}

// Sizes, in bytes. Messages up to smallBody and answers up to smallAnswer are not counted as
// memory.
const (
	smallBody   = 64 << 10
	smallAnswer = 64 << 10
)

// memory is what a call has reserved of the memory of the service.
type memory struct {
	access.Reservation
	answers int64 // bytes of decisions
}

// admitRequest reserves the memory of a large message before it is decoded.
func (m *memory) admitRequest(b []byte) error {
	if len(b) <= smallBody {
		return nil
	}
	n := grpcserver.Count(b, requestAttributes)
	if n > sizes.Attributes {
		return fault.Newf("attributes", "more than %d attributes", sizes.Attributes)
	}
	return m.decoded(len(b), n)
}

// decoded reserves the memory of a message of n bytes that is decoded.
func (m *memory) decoded(n, attributes int) error {
	const textTimes, attributeBytes = 2, 96
	return m.Reserve(textTimes*int64(n) + attributeBytes*int64(attributes))
}

// admit reserves the memory of decisions, if they are large by themselves or together with earlier
// ones.
func (m *memory) admit(s run.Size) error {
	n := sizeOf(s)
	if m.answers += n; m.answers > smallAnswer {
		return m.Reserve(n)
	}
	return nil
}

// sizeOf returns about the memory of decisions, in bytes.
func sizeOf(s run.Size) int64 { return int64(s.Usages)*usageBytes + s.Bytes() }

// usageBytes is about the memory of a usage, in bytes.
const usageBytes = 512
