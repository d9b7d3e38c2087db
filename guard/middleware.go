package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/clientaddr"
)

// Middleware decides the calls of a framework. C is the type of its calls, such as
// *http.Request. Make one with [Keys] or [Rules]. It is safe for concurrent use.
type Middleware[C any] struct {
	guard      *guard
	key        func(C) string
	attributes func(C, []weir.Attribute) []weir.Attribute
	options    Options[C]
	calls      sync.Pool // of *Call
}

// Options are the options of middleware. The zero value has the defaults.
type Options[C any] struct {
	// Name is the name of the limit in headers and denials. [Rules] ignores it,
	// because rules have names. Empty means the name of the limiter, or "requests".
	Name string

	// Headers is how answers state the limits.
	Headers headers.Format

	// Cost returns the hits of a call; 0 means 1. Nil: each call is one hit.
	Cost func(C) int64

	// Denied answers a call that is denied. The header of the answer already states
	// the limits. The Call is valid until Denied returns. Nil: the answer has the
	// status and the body of the outcome that the rules of an engine define, and
	// otherwise 429 and a problem, or 503 if an outage policy denied.
	Denied func(C, *Call) error

	// Failed answers a call that could not be decided, with [ErrNoKey], an
	// error about an empty attribute or an error of the limiter, the engine or the client.
	// [Middleware.Take] states whether the call may have counted. Nil: the answer is that of
	// [ProblemOf].
	//
	// Clients can cause errors, for example with an empty key or a value that a rule cannot add
	// up. A function that lets calls continue while the limiter fails must refuse those:
	// [ProblemOf] gives them the status 400.
	Failed func(C, error) error
}

// Keys returns middleware that applies the limit of l to each key. key returns the key
// of a call; an empty key is an error. Of options the first counts. The error is about a
// nil or wrong argument.
func Keys[C any](l *weir.Limiter, key func(C) string, options ...Options[C]) (*Middleware[C], error) {
	if key == nil {
		return nil, errors.New("guard: key: nil: want a function that returns the key of a call")
	}
	o := first(options)
	o.Name = cmp.Or(o.Name, l.Name(), "requests")
	g, err := forLimiter(l, o.Name)
	return newMiddleware(&Middleware[C]{guard: g, key: key, options: o}, err)
}

// Rules returns middleware that decides by the rules of d: an engine, or a client of a
// service. attributes appends the attributes of a call to a list. It leaves out those
// that the call lacks: an empty value is an error. Of options the first counts. The error
// is about a nil argument.
func Rules[C any](d Decider, attributes func(C, []weir.Attribute) []weir.Attribute, options ...Options[C]) (*Middleware[C], error) {
	if attributes == nil {
		return nil, errors.New("guard: attributes: nil: want a function that appends the attributes of a call")
	}
	g, err := forEngine(d)
	return newMiddleware(&Middleware[C]{guard: g, attributes: attributes, options: first(options)}, err)
}

// PerIP returns middleware that admits quota calls of each client in each window, by a limiter of its
// own in this process's memory. address returns where a call comes from: the address of the connection, with a
// port, and the values of the header X-Forwarded-For.
//
// A client is an IPv4 address, or the first 64 bits of an IPv6 address, because one client
// has all addresses that share them. trusted are the addresses or CIDR blocks of the
// proxies in front of the program. Without them, and for a connection that does not come from one of
// them, the header may be forged: it is ignored, and the address of the connection counts. Otherwise
// the client is the last address in the header that is not in trusted. A connection without an address,
// such as that of a Unix socket, has no key unless a proxy states the client.
//
// The errors are a wrong quota, window or network, and a nil function.
func PerIP[C any](quota int64, window time.Duration, trusted []string, address func(C) (peer string, forwarded []string)) (*Middleware[C], error) {
	if address == nil {
		return nil, errors.New("guard: address: nil: want a function that returns the address of a call")
	}
	proxies, err := clientaddr.NewProxies(trusted)
	if err != nil {
		return nil, fmt.Errorf("guard: trusted: %w", err)
	}
	l, err := weir.NewLimiter(weir.Sliding(quota, window))
	if err != nil {
		return nil, err
	}
	return Keys(l, func(c C) string {
		peer, forwarded := address(c)
		if proxies == nil {
			return AddressKey(peer)
		}
		group, _ := clientaddr.Group(proxies.Client(peer, forwarded))
		return group
	})
}

func first[C any](options []Options[C]) (o Options[C]) {
	if len(options) > 0 {
		o = options[0]
	}
	return o
}

func newMiddleware[C any](m *Middleware[C], err error) (*Middleware[C], error) {
	if err != nil {
		return nil, err
	}
	m.calls.New = func() any { return new(Call) }
	return m, nil
}

// Options returns the options of m.
func (m *Middleware[C]) Options() *Options[C] { return &m.options }

// Take decides c and counts it if it is allowed. The caller must pass the Call to
// [Middleware.End] when c is over. If the call is allowed and holds something, the Call
// keeps that alive until then.
//
// The error is [ErrNoKey] or one about an empty attribute for a call that cannot be
// decided, and otherwise that of [weir.Limiter.AllowN] or [weir.Engine.Take].
// Nothing was counted then, unless the error is that of a client and states otherwise.
// While a store cannot answer there is no error: the outage policy decides, and
// Call.Limits.Degraded has the reason.
//
// When ctx is done, a take that has begun goes on within the time-out of the store or of the client, so that
// what it holds is released.
func (m *Middleware[C]) Take(ctx context.Context, c C) (*Call, error) {
	call := m.calls.Get().(*Call)
	ask := ask{}
	if m.options.Cost != nil {
		ask.hits = m.options.Cost(c)
	}
	if m.key != nil {
		ask.key = m.key(c)
	} else {
		call.list = m.attributes(c, call.list[:0])
		ask.attributes = call.list
	}
	if err := m.guard.take(ctx, ask, call); err != nil {
		m.End(call)
		return nil, err
	}
	return call, nil
}

// End ends call: it releases what the call has in flight, and settles other holds at the
// amount held, or at the cost that [Call.SetAttributes] has set. It reuses the memory of call,
// so call must not be used afterwards.
func (m *Middleware[C]) End(call *Call) {
	call.end()
	if call.held != nil {
		return // not reused: a handler that http.TimeoutHandler has left may still set attributes
	}
	call.forget()
	m.calls.Put(call)
}

// statusOf returns the HTTP status of an answer to a call that could not be decided:
// 400 for a call without a key, with an empty attribute or with other bad input, and
// otherwise 503.
func statusOf(err error) int {
	var empty *emptyAttributeError
	var bad *fault.Fault
	if errors.Is(err, ErrNoKey) || errors.As(err, &empty) || errors.As(err, &bad) {
		return 400
	}
	return 503
}

// ProblemOf returns the answer to a call that could not be decided. It shows the error
// to the caller only if the call is wrong.
func ProblemOf(err error) *headers.Problem {
	p := &headers.Problem{Status: statusOf(err), Detail: "the limit of the request could not be decided"}
	if p.Status == 400 {
		p.Detail = err.Error()
	}
	return p
}

// AddressKey returns the key of the client at an address, with or without a port: the IPv4 address, or
// the first 64 bits of the IPv6 address, because one client has all addresses that share
// them. It returns an empty string if the address is none, such as that of a Unix socket.
func AddressKey(address string) string {
	group, _ := clientaddr.PeerGroup(address)
	return group
}
