// Package grpcserver serves gRPC on one listener: it authenticates callers, enforces the resource limits
// of the service, turns errors into gRPC codes, reports health, and drains. Front ends register their
// methods; the package does not depend on any of them.
//
// A method is registered as a stream even if it answers one message with one, so that the caller is
// authenticated and counted against the resource limits before the message is read. On the wire both are
// the same.
package grpcserver
