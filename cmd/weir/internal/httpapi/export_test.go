package httpapi

import (
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/store"
)

// Decode reads body as one request for a take. Its error is line:column: field:
// problem.
func Decode(body []byte) (weir.Request, error) { return DecodeFor(store.Take, body) }

// DecodeFor decodes a body for another verb.
func DecodeFor(verb store.Verb, body []byte) (weir.Request, error) {
	var s scanner
	var item weir.Item
	if f := s.decode(body, verb, &item); f != nil {
		return weir.Request{}, f
	}
	return item.Request, nil
}

// Calls returns "METHOD PATH" of each call with the scopes that it needs.
func (a *API) Calls() map[string]access.Scope {
	all := map[string]access.Scope{}
	for path, methods := range a.routes {
		for method, to := range methods {
			all[strings.TrimSpace(method+" "+path)] = to.need
		}
	}
	return all
}
