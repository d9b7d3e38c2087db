// Package grpcmessage lets messages of gRPC read and write themselves, on servers and
// on clients. Those of generated code take about three times as long.
package grpcmessage
