// Command emptygrpc answers every call of Envoy's rate limit protocol with OK, and every
// take of weir.v1 with the same decision. It measures the cost of gRPC itself, for
// comparison with the service.
//
// A call of Envoy's with several descriptors gets a full status for each of them. Messages
// on a stream of weir.v1 are answered without generated code, as the service does it, with
// the same decision for each request.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/client/grpcmessage"
	"github.com/weirhq/weir/client/rpcwire"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
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
	m := messages{}
	m.decision.Allowed, m.decision.Outcome = true, rule.Allow
	m.decision.Usages = []weir.Usage{{Rule: "calls", Key: "user-0000000", Hits: 1, Result: window.Result{
		Allowed: true, Quota: 1_000_000, Used: 1, Remaining: 999_999, ResetAfter: time.Hour,
	}}}
	for {
		if err := stream.RecvMsg(&m); err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		if err := stream.SendMsg(&m); err != nil {
			return err
		}
	}
}

// messages is the messages of one stream, and their answers. It implements
// [grpcmessage.Message].
type messages struct {
	read     rpcwire.Group
	decision weir.Decision
}

// ReadMessage implements [grpcmessage.Message].
func (m *messages) ReadMessage(b []byte) error { return m.read.ReadDecide(b) }

// AppendMessage implements [grpcmessage.Message].
func (m *messages) AppendMessage(b []byte) ([]byte, error) {
	b = rpcwire.AppendID(b, m.read.ID)
	for range m.read.Requests {
		b = rpcwire.AppendDecideDecision(b, &m.decision)
	}
	return b, nil
}

func main() {
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(grpcmessage.New()))
	rls.RegisterRateLimitServiceServer(s, empty{})
	weirv1.RegisterWeirServiceServer(s, nothing{})
	log.Fatal(s.Serve(l))
}
