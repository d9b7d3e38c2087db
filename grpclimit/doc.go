// Package grpclimit limits the calls of gRPC servers and clients, by interceptors.
//
//	server := grpc.NewServer(grpclimit.PerIP(100, time.Minute).ServerOptions()...)
//
// [PerIP] limits each client in one line. [Keys] applies one limit to each key, and the key is a required argument. [Rules]
// decides by a set of rules. A denial is an error with the code ResourceExhausted, the
// wait as a RetryInfo, and the limits that are exceeded as a QuotaFailure; [Wait] reads
// the wait. Servers state the limits in the header of an answer, in a dialect of
// package headers.
//
// A stream counts once, when it is opened, and with [Limit.EachMessage] also for each message
// that the other side sends (on a server) or that is sent (on a client).
//
// While a store cannot answer, the outage policy of the limiter or of the rules
// decides. The header then has weir-degraded with the reason, and the observer of the
// limiter or the engine is called.
//
// The holds of a call end when the call or the stream has ended. Until then the
// interceptors renew them.
package grpclimit
