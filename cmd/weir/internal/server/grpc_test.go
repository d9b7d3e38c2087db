package server_test

import (
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
)

var grpcAddress = regexp.MustCompile(`grpc=(\S+)`)

// grpcHost waits until the service has logged its address for gRPC, and returns
// that without the scheme.
func (s *service) grpcHost(t *testing.T) string {
	t.Helper()
	s.logs.await(t, 1, `msg="listening for gRPC"`)
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	u, err := url.Parse(grpcAddress.FindStringSubmatch(s.logs.text.String())[1])
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// dial returns a connection to target, which the test's end closes.
func dial(t *testing.T, target string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func healthOf(t *testing.T, conn *grpc.ClientConn, service string) (healthpb.HealthCheckResponse_ServingStatus, error) {
	t.Helper()
	a, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
	return a.GetStatus(), err
}

func TestGRPCListeners(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.server(t)
	socket := filepath.Join(t.TempDir(), "grpc")
	for name, tc := range map[string]struct {
		listen string
		creds  credentials.TransportCredentials
	}{
		"plain":  {"127.0.0.1:0", insecure.NewCredentials()},
		"socket": {"unix:" + socket, insecure.NewCredentials()},
		"tls":    {"https://127.0.0.1:0", credentials.NewTLS(a.via(t, "", true).TLSClientConfig)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *config.Config) {
				c.GRPCListen = tc.listen
				if name == "tls" {
					c.Access.TLSCert, c.Access.TLSKey = a.path("server.pem"), a.path("server.key")
				}
			})
			target := "unix:" + socket
			if name != "socket" {
				target = s.grpcHost(t)
			}
			conn := dial(t, target, tc.creds)
			if got, err := healthOf(t, conn, ""); got != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("got %v, %v, want SERVING", got, err)
			}
			if _, err := healthOf(t, conn, "nope"); status.Code(err) != codes.NotFound {
				t.Errorf("got %v, want NotFound", err)
			}
		})
	}
}

// A service that needs its store is not ready without it, from the first call on.
func TestGRPCHealthAtStart(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config.Config) {
		c.GRPCListen, c.Store, c.ReadyNeedsStore = "127.0.0.1:0", "redis://127.0.0.1:1", true
	})
	conn := dial(t, s.grpcHost(t), insecure.NewCredentials())
	if got, err := healthOf(t, conn, ""); got != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("got %v, %v, want NOT_SERVING", got, err)
	}
}

// Envoy's calls are counted by the rules of the HTTP API, and need a token with
// the scope decide where others do. A receipt is settled over HTTP.
func TestEnvoyCalls(t *testing.T) {
	t.Parallel()
	shop, ops := access.NewToken(), access.NewToken()
	file := filepath.Join(t.TempDir(), "tokens")
	write(t, file, access.Line("shop", shop, access.Decide, "")+"\n"+access.Line("ops", ops, access.Read, "")+"\n")
	rules := rulesFile(t, `rules:
  - {name: posts, when: {domain: shop}, per: [user], limit: 2, window: {held: 1h}}
`)
	socket := filepath.Join(t.TempDir(), "grpc")
	s := start(t, func(c *config.Config) {
		c.GRPCListen, c.Rules, c.Access.Tokens = "unix:"+socket, rules, file
	})
	client := rls.NewRateLimitServiceClient(dial(t, "unix:"+socket, insecure.NewCredentials()))
	call := func(token string) (*rls.RateLimitResponse, error) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		return client.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "shop", Descriptors: []*common.RateLimitDescriptor{
			{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "ann"}}},
		}})
	}
	if _, err := call(ops); status.Code(err) != codes.PermissionDenied {
		t.Fatalf("without the scope: got %v, want PermissionDenied", err)
	}
	if got, err := healthOf(t, dial(t, "unix:"+socket, insecure.NewCredentials()), "ratelimit"); got != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("got %v, %v, want SERVING", got, err)
	}
	var receipt string
	for i, want := range []rls.RateLimitResponse_Code{rls.RateLimitResponse_OK, rls.RateLimitResponse_OK, rls.RateLimitResponse_OVER_LIMIT} {
		a, err := call(shop)
		if err != nil || a.OverallCode != want {
			t.Fatalf("call %d: got %v, %v, want %v", i, a, err, want)
		}
		if i == 0 {
			receipt = a.DynamicMetadata.Fields["weir.receipt"].GetStringValue()
		}
	}
	settle := `{"receipt":"` + receipt + `","attributes":{"domain":"shop","user":"ann"}}`
	if a := ask(t, http.DefaultTransport, "POST", s.api+"/v1/settle", shop, settle); a.status != 200 || !strings.Contains(a.text, `"held":true`) {
		t.Errorf("got %d %s, want the hold settled", a.status, a.text)
	}
	if a, err := call(shop); err != nil || a.OverallCode != rls.RateLimitResponse_OK {
		t.Errorf("after the settle: got %v, %v, want OK", a, err)
	}
}

// Connections that send nothing make room for one with a stream, which may send nothing for long, too.
func TestStreamsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	const most = 4
	s := start(t, func(c *config.Config) {
		c.Rules, c.GRPCListen, c.Resources.Connections = rulesFile(t, posts(1)), "127.0.0.1:0", most
	})
	at := s.grpcHost(t)
	stream, err := weirv1.NewWeirServiceClient(dial(t, at, insecure.NewCredentials())).Events(t.Context(), &weirv1.EventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil { // the stream has begun
		t.Fatal(err)
	}
	first := connect(t, at)
	for range most {
		connect(t, at)
	}
	if _, err := io.Copy(io.Discard, first); err != nil {
		t.Errorf("the first connection that sends nothing: got %v, want its end", err)
	}
	if a := ask(t, http.DefaultTransport, http.MethodPut, s.api+"/v1/overrides", "", `{"rule":"posts","attributes":{"user":"ann"},"limit":7}`); a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	if e, err := stream.Recv(); err != nil || e.GetKind() != "override_set" {
		t.Errorf("got %v and %v, want the event", e, err)
	}
}
