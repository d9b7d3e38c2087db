// Command emptygrpc answers every call of Envoy's rate limit protocol with OK, and every
// take of weir.v1 with an empty decision. It measures the cost of gRPC itself, for comparison with the service.
package main

import (
	"context"
	"log"
	"net"
	"os"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
)

// empty is a server without a limit.
type empty struct {
	rls.UnimplementedRateLimitServiceServer
}

func (empty) ShouldRateLimit(context.Context, *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	return &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}, nil
}

// nothing is a server that decides nothing.
type nothing struct {
	weirv1.UnimplementedWeirServiceServer
}

func (nothing) Take(context.Context, *weirv1.TakeRequest) (*weirv1.TakeResponse, error) {
	return &weirv1.TakeResponse{Decision: &weirv1.Decision{Allowed: true}}, nil
}

func main() {
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(s, empty{})
	weirv1.RegisterWeirServiceServer(s, nothing{})
	log.Fatal(s.Serve(l))
}
