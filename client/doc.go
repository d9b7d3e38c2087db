// Package client asks a weir service for decisions, over gRPC. A [Client] has the
// methods of a [weir.Engine]: both are a [weir.Decider], so that a program moves from
// counting in its own process to a service by another constructor.
//
// A take is not idempotent: one that is sent twice counts twice. The client therefore
// sends nothing again that may have counted. [Uncounted] reports whether an error means
// for certain that nothing was counted, so that the program may call again.
//
// Each call has a deadline: that of its context, or else the one of [WithTimeout].
//
// [WithStreams] makes calls share streams. Calls that wait at the same time travel
// together, so that many goroutines get several times as many decisions a second. A
// call alone does not wait for others.
package client
