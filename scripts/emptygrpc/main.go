// Command emptygrpc answers every call of Envoy's rate limit protocol with OK and
// nothing else. It measures the cost of gRPC itself, for comparison with the service.
package main

import (
	"context"
	"log"
	"net"
	"os"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

// empty is a server without a limit.
type empty struct {
	rls.UnimplementedRateLimitServiceServer
}

func (empty) ShouldRateLimit(context.Context, *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	return &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}, nil
}

func main() {
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(s, empty{})
	log.Fatal(s.Serve(l))
}
