package xds_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	limits "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/cmd/weir/internal/xds"
)

// broken is a management server that answers each message, as soon as the test has received it, with the
// next of its resources, and with the last one without end.
type broken struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	sends    []*anypb.Any
	received chan *discovery.DiscoveryRequest
}

func (b *broken) StreamAggregatedResources(s discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	for i := 0; ; i++ {
		in, err := s.Recv()
		if err != nil {
			return err
		}
		select {
		case b.received <- in:
		case <-s.Context().Done():
			return s.Context().Err()
		}
		r := b.sends[min(i, len(b.sends)-1)]
		if err := s.Send(&discovery.DiscoveryResponse{TypeUrl: resource.RateLimitConfigType, VersionInfo: "1", Nonce: "1", Resources: []*anypb.Any{r}}); err != nil {
			return err
		}
	}
}

// run runs a client of a server that sends resources, and returns what the server receives. apply is the
// client's.
func run(t *testing.T, apply func() error, sends ...*limits.RateLimitConfig) <-chan *discovery.DiscoveryRequest {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &broken{received: make(chan *discovery.DiscoveryRequest)}
	for _, m := range sends {
		r, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		b.sends = append(b.sends, r)
	}
	s := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(s, b)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = s.Serve(l) })
	c := xds.Client{
		Config: config.XDS{Server: l.Addr().String(), Node: "a", RetryAfter: time.Second, MaxRetryAfter: time.Second, MaxMessage: 1 << 20},
		Apply:  func([]envoyfile.Source) error { return apply() },
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	all.Go(func() { c.Run(ctx) })
	t.Cleanup(func() {
		stop()
		s.Stop()
		all.Wait()
	})
	return b.received
}

// A server that sends messages without end has little effect.
func TestEndlessMessages(t *testing.T) {
	t.Parallel()
	a, b := &limits.RateLimitConfig{Name: "a", Domain: "a"}, &limits.RateLimitConfig{Name: "b", Domain: "b"}
	var many []*limits.RateLimitConfig
	for range 1000 {
		many = append(many, a, b)
	}
	for name, tc := range map[string]struct {
		sends   []*limits.RateLimitConfig
		refused error
		want    int // calls of Apply until the fourth message is answered
	}{
		"in force":          {many[:1], nil, 1},
		"refused":           {many[:1], errors.New("no"), 1},
		"in turns":          {many, nil, 4},
		"refused, in turns": {many, errors.New("no"), 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			applied := make(chan struct{}, 1000)
			began := time.Now()
			received := run(t, func() error { applied <- struct{}{}; return tc.refused }, tc.sends...)
			<-received // the first request
			for i := range 3 {
				if in := <-received; (in.ErrorDetail != nil) != (tc.refused != nil) {
					t.Errorf("answer %d: got refusal %v, want %v", i, in.ErrorDetail, tc.refused)
				}
			}
			if got := len(applied); got > tc.want {
				t.Errorf("got %d calls of Apply, want at most %d", got, tc.want)
			}
			if took := time.Since(began); took < 900*time.Millisecond {
				t.Errorf("got three answers in %v, want two pauses of half a second", took)
			}
		})
	}
}

// The text of limits that are nested deep would be many times larger than the message.
func TestDeepLimits(t *testing.T) {
	t.Parallel()
	deep := func(n int) *limits.RateLimitConfig {
		m := &limits.RateLimitConfig{Name: "a", Domain: "a"}
		list := &m.Descriptors
		for range n {
			d := &limits.RateLimitDescriptor{Key: "k"}
			*list = append(*list, d)
			list = &d.Descriptors
		}
		return m
	}
	for _, tc := range []struct {
		sent *limits.RateLimitConfig
		want string
	}{
		{deep(65), "descriptors are nested too deep: want at most 64"},
		{deep(9000), "descriptors are nested too deep: want at most 64"},
		{&limits.RateLimitConfig{Name: "a", Domain: "a", Descriptors: make([]*limits.RateLimitDescriptor, 200_001)}, "too large: want at most 200000 descriptors"},
	} {
		for i := range tc.sent.Descriptors {
			if tc.sent.Descriptors[i] == nil {
				tc.sent.Descriptors[i] = &limits.RateLimitDescriptor{}
			}
		}
		received := run(t, func() error { t.Error("Apply was called"); return nil }, tc.sent)
		<-received // the first request
		if in := <-received; !strings.Contains(in.ErrorDetail.GetMessage(), tc.want) {
			t.Errorf("got refusal %v, want %s", in.ErrorDetail, tc.want)
		}
	}
}
