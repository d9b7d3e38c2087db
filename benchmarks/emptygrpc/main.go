// Command emptygrpc answers every call of Envoy's rate limit protocol with OK, and every
// take of weir.v1 with the same decision. It measures the cost of gRPC itself, for
// comparison with the service.
//
// A call of Envoy's with several descriptors gets a full status for each of them, and a
// message on a stream of weir.v1 the same decision for each request.
package main

import (
	"context"
	"log"
	"net"
	"os"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
)

// empty is a server without a limit.
type empty struct {
	rls.UnimplementedRateLimitServiceServer
}

func (empty) ShouldRateLimit(_ context.Context, in *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	out := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}
	if len(in.Descriptors) > 1 {
		for range in.Descriptors {
			out.Statuses = append(out.Statuses, &rls.RateLimitResponse_DescriptorStatus{
				Code:           rls.RateLimitResponse_OK,
				CurrentLimit:   &rls.RateLimitResponse_RateLimit{Name: "calls", RequestsPerUnit: 1_000_000, Unit: rls.RateLimitResponse_RateLimit_HOUR},
				LimitRemaining: 999_999, DurationUntilReset: &durationpb.Duration{Seconds: 3600},
			})
		}
	}
	return out, nil
}

// nothing is a server that decides nothing.
type nothing struct {
	weirv1.UnimplementedWeirServiceServer
}

func (nothing) Take(context.Context, *weirv1.TakeRequest) (*weirv1.TakeResponse, error) {
	return &weirv1.TakeResponse{Decision: &weirv1.Decision{Allowed: true}}, nil
}

// Decide answers messages until the client sends no more.
func (nothing) Decide(stream weirv1.WeirService_DecideServer) error {
	calls := &weirv1.Answer{Kind: &weirv1.Answer_Decision{Decision: &weirv1.Decision{
		Allowed: true, Outcome: "allow", Limits: []*weirv1.RuleUsage{{
			Rule: "calls", Kind: weirv1.RuleKind_RULE_KIND_LIMIT, Key: "user-0000000", Allowed: true, Hits: 1, Quota: proto.Int64(1_000_000),
			Used: 1, Remaining: proto.Int64(999_999), ResetAfter: &durationpb.Duration{Seconds: 3600},
		}},
	}}}
	var in weirv1.DecideRequest
	var out weirv1.DecideResponse
	for {
		if err := stream.RecvMsg(&in); err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		out.Id, out.Answers = in.Id, out.Answers[:0]
		for range in.Requests {
			out.Answers = append(out.Answers, calls)
		}
		if err := stream.SendMsg(&out); err != nil {
			return err
		}
	}
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
