// Package envoyrls serves Envoy's rate limit protocol, version 3: it reads calls of
// ShouldRateLimit, calls the engine, and writes statuses. docs/guides/envoy.md describes
// it to its users.
//
// With weir's own rules each descriptor is a request: the domain and the entries
// are its attributes. All takes of a call are one decision. As a replacement of
// envoyproxy/ratelimit ([Reference]), package envoyfile finds the limits, and each descriptor is
// counted by itself, unless Reference.Together is set.
package envoyrls
