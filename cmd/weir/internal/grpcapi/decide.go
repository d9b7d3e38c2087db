package grpcapi

import (
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// exchange is the memory of one call about one request. Later calls reuse it.
type exchange struct {
	in      grpcserver.Received // of request
	request weirv1.Request
	attrs   []weir.Attribute
	ask     ask
	item    [1]weir.Item    // of ask
	message weirv1.Decision // of the decision
	out     weirv1.TakeResponse
	memory  memory
	admit   func(run.Size) error // memory.admit, made once
}

func newExchange() *exchange {
	x := &exchange{}
	x.in = grpcserver.Received{Message: &x.request, Admit: x.reserve}
	x.admit = x.memory.admit
	x.out.Decision = &x.message
	return x
}

// reserve reserves the memory of a large message before it is decoded.
func (x *exchange) reserve(b []byte) error {
	if len(b) <= smallBody {
		return nil
	}
	n := grpcserver.Count(b, requestAttributes)
	if n > sizes.Attributes {
		return tooManyAttributes("attributes")
	}
	return x.memory.decoded(len(b), n)
}

func tooManyAttributes(path string) error {
	return fault.Newf(path, "more than %d attributes", sizes.Attributes)
}

// decide returns the handler of the method for a verb.
func (a *API) decide(verb store.Verb) func(*grpcserver.Call) error {
	return func(c *grpcserver.Call) error {
		x := a.exchanges.Get().(*exchange)
		defer a.free(x)
		x.memory.Resources = c.Resources()
		space, err := c.Namespace(a.spaces)
		if err != nil {
			return err
		}
		if err := c.RecvMsg(&x.in); err != nil {
			return err
		}
		if x.in.Err != nil {
			return x.in.Err
		}
		if x.attrs = x.ask.read(&x.request, verb, x.attrs[:0]); x.ask.fault != nil {
			return x.ask.fault
		}
		if err := c.Begin(); err != nil {
			return err
		}
		it := &x.item[0]
		it.Verb, it.Request = x.ask.verb, x.ask.request
		_, err = space.Run(c.Context(), x.item[:], run.Options{Admit: x.admit})
		c.End()
		if err != nil {
			return err
		}
		setDecision(&x.message, &it.Decision)
		return c.SendMsg(&x.out)
	}
}

// Sizes, in bytes. Messages up to smallBody and answers up to smallAnswer are not counted as
// memory. Exchanges with more than maxKept are dropped after the call.
const (
	smallBody   = 64 << 10
	smallAnswer = 64 << 10
	maxKept     = 64 << 10
)

// free returns x to the pool.
func (a *API) free(x *exchange) {
	x.memory.free()
	if 64*cap(x.attrs)+256*cap(x.item[0].Decision.Usages) > maxKept {
		return
	}
	proto.Reset(&x.request)
	clear(x.attrs)
	x.ask, x.item[0].Request = ask{}, weir.Request{}
	a.exchanges.Put(x)
}

// memory is the part of the service's memory that a call has reserved.
type memory struct {
	access.Reservation
	answers int64 // bytes of decisions
}

// decoded reserves the memory of a message of n bytes that is decoded.
func (m *memory) decoded(n, attributes int) error {
	const textTimes, attributeBytes = 2, 96
	return m.Reserve(textTimes*int64(n) + attributeBytes*int64(attributes))
}

// admit reserves the memory of decisions, if they are large by themselves or together with earlier
// ones.
func (m *memory) admit(s run.Size) error {
	n := int64(s.Usages)*usageBytes + s.Bytes()
	if m.answers += n; m.answers > smallAnswer {
		return m.Reserve(n)
	}
	return nil
}

// usageBytes is about the memory of a usage, in bytes.
const usageBytes = 512

// free releases the reservation.
func (m *memory) free() {
	m.Free()
	*m = memory{}
}
