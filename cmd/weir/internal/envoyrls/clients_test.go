package envoyrls_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/envoyrls"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
)

// strange is a codec that writes BAD as bytes that are not UTF-8, which generated messages cannot have.
type strange struct{ encoding.Codec }

func (strange) Name() string { return "proto" }

func (strange) Marshal(m any) ([]byte, error) {
	b, err := proto.Marshal(m.(proto.Message))
	return bytes.ReplaceAll(b, []byte("BAD"), []byte("\xff\xe2\x82")), err
}

func (strange) Unmarshal(b []byte, m any) error { return proto.Unmarshal(b, m.(proto.Message)) }

// Envoy lets pass what gets an error (failure_mode_deny: false), so that none of what clients can choose may cause one.
func TestClientsEscapeNoLimit(t *testing.T) {
	t.Parallel()
	api, engine := newAPI(t, `rules:
  - {name: per-address, per: [address], limit: 100, window: 1h}
  - {name: uploads, when: {path: {prefix: /upload}}, per: [user], limit: 2, window: 1h}
  - {name: tokens, per: [address], sum: tokens, limit: 100, window: 1h}
  - {name: plan, per: [address], limit: {of: quota, most: 100}, window: 1h}
`)
	l := bufconn.Listen(1 << 16)
	s := grpcserver.New(grpcserver.Config{})
	s.Add(envoyrls.Service, envoyrls.File, api.Methods())
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	conn, err := grpc.NewClient("passthrough:weir", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func(descriptors ...[]string) (*rls.RateLimitResponse, error) {
		in := &rls.RateLimitRequest{Domain: "edge"}
		for _, entries := range descriptors {
			d := &common.RateLimitDescriptor{}
			for i := 0; i < len(entries); i += 2 {
				d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: entries[i], Value: entries[i+1]})
			}
			in.Descriptors = append(in.Descriptors, d)
		}
		return rls.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), in, grpc.ForceCodec(strange{}))
	}

	const ok, over = rls.RateLimitResponse_OK, rls.RateLimitResponse_OVER_LIMIT
	long := strings.Repeat("a", 9000)
	for _, tc := range []struct {
		name    string
		entries []string
		want    rls.RateLimitResponse_Code
	}{
		{"bytes that are not UTF-8", []string{"user", "BAD", "path", "/x?BAD"}, ok},
		{"a long value that no rule uses", []string{"agent", long}, ok},
		{"a long value that a rule uses", []string{"path", "/upload?" + long}, over},
		{"a long value that a rule would use for other paths", []string{"path", "/x", "user", long}, over},
		{"no number", []string{"tokens", "abc"}, over},
		{"a negative number", []string{"tokens", "-1"}, over},
		{"a number of 9,000 digits", []string{"tokens", strings.Repeat("9", 9000)}, over},
		{"no quota", []string{"quota", "1e3"}, over},
		{"an empty value", []string{"user", "", "tokens", "", "quota", "", "path", ""}, ok},
	} {
		before, _ := engine.Usage(t.Context(), "per-address", weir.Attributes("address", "a"))
		out, err := ask([]string{"address", "a"}, append([]string{"address", "b"}, tc.entries...))
		if err != nil {
			t.Errorf("%s: got %v", tc.name, err)
			continue
		}
		if out.OverallCode != tc.want || out.Statuses[0].Code != ok || out.Statuses[1].Code != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, out, tc.want)
		}
		after, err := engine.Usage(t.Context(), "per-address", weir.Attributes("address", "a"))
		if counted := after.Used - before.Used; err != nil || counted != map[rls.RateLimitResponse_Code]int64{ok: 1, over: 0}[tc.want] {
			t.Errorf("%s: counted %d hits, %v", tc.name, counted, err)
		}
	}
	// Bytes that are not UTF-8 count as question marks.
	for range 2 {
		if _, err := ask([]string{"user", "eveBAD", "path", "/upload"}); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := engine.Usage(t.Context(), "uploads", weir.Attributes("user", "eve???")); err != nil || u.Used != 2 {
		t.Errorf("got %d hits of eve, %v, want 2", u.Used, err)
	}
}
