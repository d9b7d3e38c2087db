// Package client asks a weir service for decisions, over gRPC. A [Client] has the
// methods of a [weir.Engine], so that a program that counts in its own process can move
// to a service with another constructor. Decisions of a Client have nil
// [weir.Decision.Rules], and requests to a Client cannot have [weir.Request.Rules].
//
// A take that is sent twice counts twice, unless it has a [weir.Request.IdempotencyKey]. The client therefore
// never repeats a call that may have counted, unless [WithRetries] gives calls keys. [Uncounted] reports whether it is certain
// that a failed call counted nothing, so that the program may call again.
//
// Each call has a deadline: the deadline of its context or, without one, the time
// that [WithTimeout] sets. A connection that the network has lost without a word is replaced within some 20 seconds, on
// Linux mostly within 6.
//
// [WithStreams] makes calls share streams. Calls that wait at the same time are sent
// together, so that many goroutines get several times as many decisions a second. A single
// call does not wait for others.
package client
