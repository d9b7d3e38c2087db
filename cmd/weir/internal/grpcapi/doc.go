// Package grpcapi is the gRPC API, weir.v1: it reads requests, calls the engine, and
// writes decisions. A denial is an ordinary answer. A request that cannot be decided
// ends with a status, or with a problem among the answers to others. docs/reference/grpc.md
// describes the API to its users.
package grpcapi
