// Package grpcserver serves gRPC on one listener: it decides who may call, keeps
// to the resource limits of the service, turns errors into gRPC codes, reports health, and
// drains. Front ends bring their methods; the package knows none of them.
//
// A method is registered as a stream, also where it answers one message with
// one. So the caller is known, and has its place within the limits, before the
// message is read. On the wire both are the same.
package grpcserver
