package server_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
)

const envoyFile = `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: 2}
`

const userAnn = `{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}`

// The service takes the place of envoyproxy/ratelimit: the same files, the same
// calls over HTTP and gRPC, the same counters for both, and a reload when a file
// changes or a new one comes.
func TestEnvoyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "shop.yaml")
	write(t, file, envoyFile)
	write(t, filepath.Join(dir, "README.md"), "not a rule file")
	socket := filepath.Join(t.TempDir(), "grpc")
	s := start(t, func(c *config.Config) {
		c.Envoy.Dir, c.Envoy.Metrics, c.Envoy.Headers, c.GRPCListen = dir, true, true, "unix:"+socket
	})
	client := rls.NewRateLimitServiceClient(dial(t, "unix:"+socket, insecure.NewCredentials()))
	json := func(body string) answer {
		return ask(t, http.DefaultTransport, "POST", s.api+"/json", "", body)
	}

	if a := ask(t, http.DefaultTransport, "GET", s.api+"/healthcheck", "", ""); a.status != 200 || !strings.HasSuffix(a.text, " OK") {
		t.Errorf("healthcheck: got %d %s", a.status, a.text)
	}
	a := json(userAnn)
	if text := strings.ReplaceAll(a.text, " ", ""); a.status != 200 || !strings.Contains(text, `"overallCode":"OK"`) || !strings.Contains(text, `"limitRemaining":1`) ||
		!strings.Contains(text, `{"key":"RateLimit-Remaining","value":"1"}`) {
		t.Fatalf("got %d %s, want one left", a.status, a.text)
	}
	out, err := client.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "shop", Descriptors: []*common.RateLimitDescriptor{
		{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "ann"}}},
	}})
	if err != nil || out.OverallCode != rls.RateLimitResponse_OK || out.Statuses[0].LimitRemaining != 0 || out.Statuses[0].CurrentLimit.Unit != rls.RateLimitResponse_RateLimit_YEAR {
		t.Fatalf("got %v, %v, want the last one", out, err)
	}
	if a := json(userAnn); a.status != 429 || !strings.Contains(a.text, "OVER_LIMIT") {
		t.Errorf("got %d %s, want 429", a.status, a.text)
	}
	for body, want := range map[string]int{
		`{`:                             400,
		`{"domain":"shop","unknown":1}`: 400,
		`{"domain":"shop"}`:             400,
		`{"domain":"other","descriptors":[{"entries":[{"key":"user"}]}]}`: 200,
		strings.Repeat(" ", 1<<20) + " ":                                  413,
	} {
		if a := json(body); a.status != want {
			t.Errorf("%.40s: got %d %s, want %d", body, a.status, a.text, want)
		}
	}
	if a := ask(t, http.DefaultTransport, "GET", s.api+"/json", "", ""); a.status != 405 {
		t.Errorf("GET /json: got %d, want 405", a.status)
	}
	metrics := ask(t, http.DefaultTransport, "GET", s.admin+"/metrics", "", "").text
	for _, want := range []string{
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 1`,
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 1`,
		`ratelimit_service_should_rate_limit_error{err_type="redis_error"} 0`,
		`ratelimit_service_should_rate_limit_error{err_type="service_error"} 1`,
		`ratelimit_service_config_load_success 1`,
		`ratelimit_service_config_load_error 0`,
		`ratelimit_service_global_shadow_mode 0`,
		`ratelimit_service_rate_limit_total_hits{domain="shop",key1="user",key2="",key3="",key4=""} 3`,
		`ratelimit_service_rate_limit_within_limit{domain="shop",key1="user",key2="",key3="",key4=""} 2`,
		`ratelimit_service_rate_limit_near_limit{domain="shop",key1="user",key2="",key3="",key4=""} 1`,
		`ratelimit_service_rate_limit_over_limit{domain="shop",key1="user",key2="",key3="",key4=""} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("got no %s", want)
		}
	}
	stats := ask(t, http.DefaultTransport, "GET", s.admin+"/stats", "", "")
	for _, want := range []string{"over_limit: 1\n", "near_limit: 1\n", "within_limit: 2\n", "total_hits: 3\n", "shadow_mode: 0\n"} {
		if want = "ratelimit.service.rate_limit.shop.user." + want; stats.status != 200 || !strings.Contains(stats.text, want) {
			t.Errorf("got %d %s, want %s", stats.status, stats.text, want)
		}
	}
	rules := func(want string) {
		t.Helper()
		if a := ask(t, http.DefaultTransport, "GET", s.admin+"/rlconfig", "", ""); a.status != 200 || !strings.Contains(a.text, want+"\n") {
			t.Errorf("got %d %s, want %s", a.status, a.text, want)
		}
	}
	rules("shop.user: unit=YEAR requests_per_unit=2, shadow_mode: false")

	write(t, file, strings.Replace(envoyFile, "2}", "9}", 1))
	s.logs.await(t, 1, `msg="rules loaded"`)
	rules("shop.user: unit=YEAR requests_per_unit=9, shadow_mode: false")
	if a := json(userAnn); a.status != 200 {
		t.Errorf("with a higher limit: got %d %s, want 200", a.status, a.text)
	}
	write(t, filepath.Join(dir, "more.yaml"), strings.Replace(envoyFile, "shop", "more", 1))
	s.logs.await(t, 2, `msg="rules loaded"`)
	if a := json(strings.Replace(userAnn, "shop", "more", 1)); !strings.Contains(a.text, "currentLimit") {
		t.Errorf("a new file: got %s, want a limit", a.text)
	}
	write(t, file, "domain: more\n")
	s.logs.await(t, 1, "rules refused; the old rules stay in force")
	if a := json(userAnn); a.status != 200 || !strings.Contains(a.text, "currentLimit") {
		t.Errorf("with a fault in the files: got %d %s, want the old limit", a.status, a.text)
	}
}

// Without rule files the service does not start.
func TestEnvoyNoFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Listen, cfg.Admin, cfg.Envoy.Dir = "127.0.0.1:0", "127.0.0.1:0", dir
	if err := server.Run(t.Context(), cfg, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "holds no file whose name ends in .yaml") {
		t.Errorf("got %v, want what is missing", err)
	}
}
