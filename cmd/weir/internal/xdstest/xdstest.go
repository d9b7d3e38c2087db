// Package xdstest runs an xDS server that sends limits of envoyproxy/ratelimit, for tests: that
// of go-control-plane.
package xdstest

import (
	"context"
	"net"
	"strconv"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	limits "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
)

// Node is the identity of the node that gets the limits.
const Node = "envoy-ratelimit"

// Server is an xDS server.
type Server struct {
	// Addr is its address.
	Addr string

	// Refusals has the reasons with which the node refused limits, and Headers the metadata
	// of the first stream.
	Refusals chan string
	Headers  chan metadata.MD

	sent    cache.SnapshotCache
	version int
	options []grpc.ServerOption
	server  *grpc.Server
}

// New starts a server at addr, which it keeps when it is started again, until the test ends.
func New(t *testing.T, addr string, options ...grpc.ServerOption) *Server {
	t.Helper()
	s := &Server{
		Addr: addr, Refusals: make(chan string, 100), Headers: make(chan metadata.MD, 1),
		sent: cache.NewSnapshotCache(true, cache.IDHash{}, nil), options: options,
	}
	s.Start(t)
	return s
}

// Start starts a server again that was stopped, at the same address.
func (s *Server) Start(t *testing.T) {
	t.Helper()
	socket, err := net.Listen("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s.server = grpc.NewServer(s.options...)
	discovery.RegisterAggregatedDiscoveryServiceServer(s.server, server.NewServer(t.Context(), s.sent, server.CallbackFuncs{
		StreamOpenFunc: func(ctx context.Context, _ int64, _ string) error {
			md, _ := metadata.FromIncomingContext(ctx)
			select {
			case s.Headers <- md:
			default:
			}
			return nil
		},
		StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
			if r.ErrorDetail != nil {
				s.Refusals <- r.ErrorDetail.Message
			}
			return nil
		},
	}))
	go func() { _ = s.server.Serve(socket) }()
	t.Cleanup(s.Stop)
}

// Stop ends the server and its connections.
func (s *Server) Stop() { s.server.Stop() }

// Send makes resources, each a RateLimitConfig as JSON, all that the node gets.
func (s *Server) Send(t *testing.T, all ...string) {
	t.Helper()
	s.version++
	resources := make([]types.Resource, len(all))
	for i, text := range all {
		c := new(limits.RateLimitConfig)
		if err := protojson.Unmarshal([]byte(text), c); err != nil {
			t.Fatal(err)
		}
		resources[i] = c
	}
	snapshot, err := cache.NewSnapshot(strconv.Itoa(s.version), map[resource.Type][]types.Resource{resource.RateLimitConfigType: resources})
	if err == nil {
		err = s.sent.SetSnapshot(t.Context(), Node, snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
}
