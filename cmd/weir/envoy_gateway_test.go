package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirhq/weir/cmd/weir/internal/xdstest"
	"github.com/weirhq/weir/internal/redistest"
)

// envoyGateway is the environment in which Envoy Gateway starts envoyproxy/ratelimit's program. Of
// its ports and files, those of this test take the place.
const envoyGateway = `RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit RUNTIME_IGNOREDOTFILES=true RUNTIME_WATCH_ROOT=false LOG_LEVEL=info
USE_STATSD=false CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_URL=%[1]s CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit
GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=%[2]s/cert.pem GRPC_SERVER_TLS_KEY=%[2]s/key.pem GRPC_SERVER_TLS_CA_CERT=%[2]s/cert.pem
CONFIG_GRPC_XDS_SERVER_USE_TLS=true CONFIG_GRPC_XDS_CLIENT_TLS_CERT=%[2]s/cert.pem CONFIG_GRPC_XDS_CLIENT_TLS_KEY=%[2]s/key.pem
CONFIG_GRPC_XDS_SERVER_TLS_CACERT=%[2]s/cert.pem FORCE_START_WITHOUT_INITIAL_CONFIG=true REDIS_SOCKET_TYPE=tcp REDIS_URL=%[3]s
USE_PROMETHEUS=true PROMETHEUS_ADDR=:%[4]d PROMETHEUS_MAPPER_YAML=/etc/statsd-exporter/conf.yaml PORT=%[5]d GRPC_PORT=%[6]d DEBUG_PORT=%[7]d`

// Envoy Gateway runs weir in the place of envoyproxy/ratelimit, by the name of its program: the
// same environment, probes, metrics and certificates; rules by xDS; counts in Redis.
func TestEnvoyGateway(t *testing.T) {
	t.Parallel()
	cert, key, authorities := selfSigned(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}

	gateway := xdstest.New(t, fmt.Sprint("127.0.0.1:", redistest.FreePort(t)), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities,
	})))
	var ports []any
	for range 4 {
		ports = append(ports, redistest.FreePort(t))
	}
	environment := fmt.Sprintf(envoyGateway, append([]any{gateway.Addr, filepath.Dir(cert), redistest.Server(t).Addr()}, ports...)...)
	program := exec.Command("ratelimit")
	program.Env = append(strings.Fields(environment), "GORACE=atexit_sleep_ms=0")
	for _, name := range []string{"PATH", "GOCOVERDIR"} {
		if value := os.Getenv(name); value != "" {
			program.Env = append(program.Env, name+"="+value)
		}
	}
	var logs lockedBuffer
	program.Stderr = &logs
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Signal(syscall.SIGTERM)
		if err := program.Wait(); err != nil {
			t.Errorf("got %v at the end\n%s", err, logs.String())
		}
	})
	greeting := bufio.NewReader(out)
	if line, err := greeting.ReadString('\n'); err != nil {
		t.Fatalf("got greeting %q, %v\n%s", line, err, logs.String())
	}
	go func() { _, _ = io.Copy(io.Discard, greeting) }()

	get := func(port any, path string) (int, string) {
		t.Helper()
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	if status, text := get(ports[1], "/healthcheck"); status != 200 || text != "OK" {
		t.Errorf("probe: got %d %s", status, text)
	}

	gateway.Send(t, `{"name":"eg/http","domain":"eg/http","descriptors":[{"key":"route","value":"route","descriptors":[
		{"key":"rule-0","value":"rule-0","rate_limit":{"unit":"HOUR","requests_per_unit":2}}]}]}`)
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", ports[2]), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{pair}})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call := &rls.RateLimitRequest{Domain: "eg/http", Descriptors: []*common.RateLimitDescriptor{
		{Entries: []*common.RateLimitDescriptor_Entry{{Key: "route", Value: "route"}, {Key: "rule-0", Value: "rule-0"}}},
	}}
	var codes []rls.RateLimitResponse_Code
	for until := time.Now().Add(time.Minute); len(codes) < 3 && time.Now().Before(until); {
		answer, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), call)
		if err == nil && answer.Statuses[0].CurrentLimit != nil { // the rules have arrived
			codes = append(codes, answer.OverallCode)
		}
	}
	if fmt.Sprint(codes) != "[OK OK OVER_LIMIT]" {
		t.Errorf("got %v, want two admitted\n%s", codes, logs.String())
	}
	if status, text := get(ports[0], "/metrics"); status != 200 || !strings.Contains(text, `ratelimit_service_rate_limit_over_limit{domain="eg/http",key1="route_route",key2="rule-0_rule-0",key3="",key4=""} 1`) {
		t.Errorf("metrics: got %d %.2000s", status, text)
	}
	if status, _ := get(ports[0], "/-/reload"); status != 404 {
		t.Errorf("metrics: got %d for another call, want 404", status)
	}
	if said := logs.String(); strings.Contains(said, "level=ERROR") {
		t.Errorf("got errors in the log:\n%s", said)
	}
}
