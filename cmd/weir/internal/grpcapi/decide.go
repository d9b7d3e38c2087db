package grpcapi

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client/rpcwire"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/fault"
)

// exchange is the memory of one call about one request. Later calls use it again: the
// strings of the request are views of its body. It implements [grpcserver.Message].
type exchange struct {
	verb     weir.Verb
	body     []byte
	attrs    []weir.Attribute
	ask      rpcwire.Ask
	err      error // of the message
	decision weir.Decision
	memory   memory
	admit    func(weir.Size) error // memory.admit, made once
}

func newExchange() *exchange {
	x := &exchange{}
	x.admit = x.memory.admit
	return x
}

// ReadMessage implements [grpcserver.Message].
func (x *exchange) ReadMessage(b []byte) (err error) {
	x.body = append(x.body[:0], b...)
	if x.attrs, err = x.ask.ReadRequest(x.body, x.verb, true, x.attrs[:0]); err != nil {
		x.err = malformed()
	} else if x.ask.Fault != nil {
		x.err = x.ask.Fault
	}
	return nil
}

// malformed returns the error for bytes that are no message.
func malformed() error { return fault.Newf("message", "cannot be read: it is not one of weir.v1") }

// AppendMessage implements [grpcserver.Message].
func (x *exchange) AppendMessage(b []byte) ([]byte, error) {
	b, start := rpcwire.OpenDecision(b)
	return rpcwire.Shut(rpcwire.AppendDecision(b, &x.decision), start), nil
}

// decide returns what serves the method for a verb.
func (a *API) decide(verb weir.Verb) func(*grpcserver.Call) error {
	return func(c *grpcserver.Call) error {
		x := a.exchanges.Get().(*exchange)
		defer a.free(x)
		x.verb, x.memory.bounds = verb, c.Bounds()
		space, err := c.Namespace(a.spaces)
		if err != nil {
			return err
		}
		if err := c.RecvMsg(x); err != nil {
			return err
		}
		if x.err != nil {
			return x.err
		}
		if err := x.memory.body(len(x.body), smallBody); err != nil {
			return err
		}
		if err := c.Begin(); err != nil {
			return err
		}
		err = space.Engine().DoIf(c.Context(), x.ask.Verb, &x.ask.Request, &x.decision, x.admit)
		c.End()
		if err != nil {
			return err
		}
		return c.SendMsg(x)
	}
}

// Sizes, in bytes. Those up to smallBody and smallAnswer are not counted as memory.
// Exchanges with more than maxKept are dropped after the call.
const (
	smallBody   = 64 << 10
	smallAnswer = 64 << 10
	maxKept     = 64 << 10
)

// free returns x to the pool.
func (a *API) free(x *exchange) {
	x.memory.free()
	x.err = nil
	if cap(x.body)+64*cap(x.attrs)+256*cap(x.decision.Usages) > maxKept {
		return
	}
	clear(x.attrs)
	x.ask = rpcwire.Ask{}
	a.exchanges.Put(x)
}

// memory is what a call has reserved of the memory of the service.
type memory struct {
	bounds   *access.Bounds // nil: none
	reserved int64
	answers  int64 // bytes of decisions
}

func (m *memory) reserve(n int64) error {
	if err := m.bounds.Reserve(n); err != nil {
		return err
	}
	m.reserved += n
	return nil
}

// body reserves the memory of a message of n bytes, if it is larger than small.
func (m *memory) body(n, small int) error {
	if n <= small {
		return nil
	}
	return m.reserve(int64(n))
}

// admit reserves the memory of decisions, if they are large, alone or with those
// before.
func (m *memory) admit(s weir.Size) error {
	n := int64(s.Usages)*usageBytes + s.Bytes()
	if m.answers += n; m.answers > smallAnswer {
		return m.reserve(n)
	}
	return nil
}

// usageBytes is about what a usage takes in memory, in bytes.
const usageBytes = 512

// free gives back what was reserved.
func (m *memory) free() {
	if m.reserved > 0 {
		m.bounds.Release(m.reserved)
	}
	m.bounds, m.reserved, m.answers = nil, 0, 0
}
