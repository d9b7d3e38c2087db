package grpclimit

import (
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
)

// Call is a call, or a message of a stream, that is to be decided.
type Call struct {
	// Context is that of the call.
	Context context.Context

	// Method is the full name of the method, such as /shop.Orders/Place.
	Method string

	// Message is the request of a unary call, or the message of a stream. It is nil
	// when a stream is opened.
	Message any
}

// Options are the options of a [Limit]. Denied and Failed return the error of the call;
// if they return nil, the call continues.
//
// Without Denied, the code of the error is ResourceExhausted, or Unavailable if an outage
// policy denied because no limit could be asked. The error has a RetryInfo with the wait,
// unless waiting does not help, and a QuotaFailure with one violation for each limit that
// denied: the subject is the name of the limit. Without Failed, the code is
// InvalidArgument for a call without a key, or with an empty attribute, and otherwise
// Unavailable.
type Options = guard.Options[Call]

// Limit decides calls. Make one with [Keys] or [Rules]. It is safe for concurrent use.
type Limit struct {
	guard    *guard.Middleware[Call]
	messages bool
}

// Keys returns a limit that applies the limit of l to each key. key returns the key of a
// call. A call with an empty key ends with the code InvalidArgument. At most one Options
// counts. The error is about a nil argument.
func Keys(l *weir.Limiter, key func(Call) string, options ...Options) (*Limit, error) {
	g, err := guard.Keys(l, key, options...)
	return newLimit(g, err)
}

// PerIP returns a limit for servers that admits quota calls of each client in each window, and counts in this
// process's memory. A client is the address of the connection, as [PeerIP] returns it. Behind proxies, trusted
// are their addresses or CIDR blocks, and a client is the last address in X-Forwarded-For that is
// not one of theirs; other proxies and clients can write the header, and are not believed. PerIP panics
// if the quota, the window or a network is invalid. For a shared store, another key or other answers,
// use [Keys].
func PerIP(quota int64, window time.Duration, trusted ...string) *Limit {
	return Must(newLimit(guard.PerIP(quota, window, trusted, func(c Call) (peer string, forwarded []string) {
		return peerAddr(c), metadata.ValueFromIncomingContext(c.Context, "x-forwarded-for")
	})))
}

// Rules returns a limit that decides by the rules of d: an engine, or a client of a
// service. attributes appends the attributes of a call to a list. A call with an empty
// value ends with the code InvalidArgument. At most one Options counts. The error is about
// a nil argument.
func Rules(d guard.Decider, attributes func(Call, []weir.Attribute) []weir.Attribute, options ...Options) (*Limit, error) {
	g, err := guard.Rules(d, attributes, options...)
	return newLimit(g, err)
}

func newLimit(g *guard.Middleware[Call], err error) (*Limit, error) {
	if err != nil {
		return nil, err
	}
	return &Limit{guard: g}, nil
}

// EachMessage returns a limit like l that counts each message of a stream in addition to the stream.
// The [Call] that counts has the message.
func (l *Limit) EachMessage() *Limit { return &Limit{l.guard, true} }

// Must returns l, or panics with err. It is for limits that are written in the program.
func Must(l *Limit, err error) *Limit {
	if err != nil {
		panic(err)
	}
	return l
}

// PeerIP returns the address from which the connection of a call comes, as a key for [Keys]. An IPv6
// address counts by its first 64 bits. Calls over a Unix socket, and calls of a client, have no
// address and thus no key.
func PeerIP(c Call) string { return guard.AddressKey(peerAddr(c)) }

// peerAddr returns the address from which the connection of a call comes, with its port, or an empty
// string.
func peerAddr(c Call) string {
	p, ok := peer.FromContext(c.Context)
	if !ok || p.Addr == nil {
		return ""
	}
	return p.Addr.String()
}

// Metadata returns a function that returns a key: the value of a field of the metadata that the caller sent. A
// call without it is an error. Anyone can send any value: verify it before.
func Metadata(name string) func(Call) string {
	return func(c Call) string {
		if values := metadata.ValueFromIncomingContext(c.Context, name); len(values) > 0 {
			return values[0]
		}
		return ""
	}
}

// Method returns the full name of the method, as a key for [Keys]. It is useful for clients that limit
// what they send.
func Method(c Call) string { return c.Method }

// take decides c. It returns a nil Call and a nil error for a call that continues without a decision,
// because Failed has returned nil.
func (l *Limit) take(c Call) (*guard.Call, error) {
	call, err := l.guard.Take(c.Context, c)
	if err == nil {
		return call, nil
	}
	if failed := l.guard.Options().Failed; failed != nil {
		return nil, failed(c, err)
	}
	return nil, undecided(err)
}

// verdict returns the error of a call that is denied, and nil for one that continues.
func (l *Limit) verdict(c Call, call *guard.Call) error {
	switch {
	case call.Allowed:
		return nil
	case l.guard.Options().Denied != nil:
		return l.guard.Options().Denied(c, call)
	}
	return denied(call)
}

// header returns the fields that state the limits of a call.
func (l *Limit) header(call *guard.Call) metadata.MD {
	h := http.Header{}
	l.guard.Options().Headers.Set(h, &call.Limits)
	md := make(metadata.MD, len(h))
	for name, values := range h {
		md[strings.ToLower(name)] = values
	}
	return md
}

// ServerOptions returns the options that apply l to all calls and streams of a server.
func (l *Limit) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(l.unaryServer), grpc.ChainStreamInterceptor(l.streamServer)}
}

// DialOptions returns the options that apply l to all calls and streams of a client.
func (l *Limit) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(l.unaryClient), grpc.WithChainStreamInterceptor(l.streamClient)}
}
