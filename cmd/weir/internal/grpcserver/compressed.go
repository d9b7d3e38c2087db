package grpcserver

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
)

// errCompressed refuses calls whose messages are compressed. Messages of the service are short, and a
// thousand bytes of gzip can be a message of a megabyte, which takes memory before it is counted.
var errCompressed = status.Error(codes.Unimplemented, "compressed messages are not supported; send them with grpc-encoding identity")

// isCompressed reports whether messages of a call can be compressed.
func isCompressed(ctx context.Context) bool {
	t, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	return ok && t.RecvCompress() != "" && t.RecvCompress() != encoding.Identity
}

// refusal is a [grpc.Decompressor] that decompresses nothing. It is for calls that grpc-go reads before it
// calls this package: gzip is registered for the whole process, because the telemetry uses it.
type refusal struct{}

// Type implements [grpc.Decompressor].
func (refusal) Type() string { return gzip.Name }

// Do implements [grpc.Decompressor].
func (refusal) Do(io.Reader) ([]byte, error) { return nil, errors.New("not supported") }
