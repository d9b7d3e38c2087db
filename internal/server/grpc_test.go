package server_test

import (
	"net/url"
	"path/filepath"
	"regexp"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/internal/config"
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
