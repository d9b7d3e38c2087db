package grpcapi

import (
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/events"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/store"
)

// Service and File are the name of the service and of the file that defines it.
const (
	Service = "weir.v1.WeirService"
	File    = "weir/v1/weir.proto"
)

// API answers calls of weir.v1. Make one with [New]. It is safe for concurrent use.
type API struct {
	namespaces *namespace.Set
	hub        *events.Hub // or nil

	items sync.Pool // of *[]weir.Item, which are empty
}

// New returns the API of namespaces.
func New(namespaces *namespace.Set) *API {
	return &API{
		namespaces: namespaces,
		items:      sync.Pool{New: func() any { return new([]weir.Item) }},
	}
}

// WithEvents makes a send the events of hub, and returns a. It must be called before a is used.
func (a *API) WithEvents(hub *events.Hub) *API {
	a.hub = hub
	return a
}

// Methods returns the methods of the service.
func (a *API) Methods() []grpcserver.Method {
	return []grpcserver.Method{
		{Name: "Take", Need: access.Decide, Serve: a.decide(store.Take)},
		{Name: "Check", Need: access.Decide, Serve: a.decide(store.Check)},
		{Name: "Record", Need: access.Record, Serve: a.decide(store.Record)},
		{Name: "Refund", Need: access.Record, Serve: a.decide(store.Refund)},
		{Name: "Settle", Need: access.Decide, Serve: a.decide(store.Settle)},
		{Name: "Cancel", Need: access.Decide, Serve: a.decide(store.Cancel)},
		{Name: "Renew", Need: access.Decide, Serve: a.decide(store.Renew)},
		{Name: "Batch", Need: access.None, Serve: a.batch}, // each request needs the scope of its verb
		{Name: "Decide", Need: access.None, Serve: a.stream, ClientStreams: true, ServerStreams: true},
		{Name: "Explain", Need: access.Read, Serve: grpcserver.Unary(a.explain)},
		{Name: "Usage", Need: access.Read, Serve: grpcserver.Unary(a.usage)},
		{Name: "Forget", Need: access.Admin, Serve: grpcserver.Unary(a.forget)},
		{Name: "SetCount", Need: access.Admin, Serve: grpcserver.Unary(a.setCount)},
		{Name: "LiftBan", Need: access.Admin, Serve: grpcserver.Unary(a.liftBan)},
		{Name: "Top", Need: access.Read, Serve: grpcserver.Unary(a.top)},
		{Name: "Denials", Need: access.Read, Serve: grpcserver.Unary(a.denials)},
		{Name: "Export", Need: access.Read, Serve: a.export, ServerStreams: true},
		{Name: "Events", Need: access.Read, Serve: a.events, ServerStreams: true},
		{Name: "Rules", Need: access.Read, Serve: grpcserver.Unary(a.rules)},
		{Name: "SetOverride", Need: access.Override, Serve: grpcserver.Unary(a.setOverride)},
		{Name: "RemoveOverride", Need: access.Override, Serve: grpcserver.Unary(a.removeOverride)},
		{Name: "Overrides", Need: access.Read, Serve: grpcserver.Unary(a.overrides)},
		{Name: "Audit", Need: access.Admin, Serve: grpcserver.Unary(a.audit)},
	}
}

// need returns the scope that a caller needs for a verb.
func need(verb store.Verb) access.Scope {
	if verb == store.Record || verb == store.Refund {
		return access.Record
	}
	return access.Decide
}
