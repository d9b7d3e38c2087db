package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/internal/redistest"
)

// TestNoSecretsOfFlags gives secrets as flags, which other users of the machine can read. No page, log or answer of the service shows them.
func TestNoSecretsOfFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secrets := map[string]string{
		"a wrong token":           access.NewToken(),
		"the Redis password":      "redis-swordfish",
		"the Sentinels' password": "sentinel-swordfish",
		"the OTLP password":       "otlp-swordfish",
		"the OTLP header":         "otlp-bearer-of-the-collector",
	}
	rules := write("koala_rule.conf", "[dicts]\n[rules]\nrule : [count] [uid=+] [time=60; count=1] [result=1; return=1]\n")
	store := "redis+sentinel://weir:" + secrets["the Redis password"] + "@127.0.0.1:1/primary?sentinel_password=" + secrets["the Sentinels' password"]
	w := &witness{}
	p := startProcess(t, exports(map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x-token=" + secrets["the OTLP header"], "OTEL_METRIC_EXPORT_INTERVAL": "100"}), "",
		"--koala", rules, "--koala-listen 127.0.0.1:0 --store", "'"+store+"'", "--nodes 1 --log-level debug",
		"--otlp-endpoint http://weir:"+secrets["the OTLP password"]+"@127.0.0.1:1")
	v := &visitor{t: t, w: w, p: p, secrets: secrets}
	v.debug("of flags", "")
	for _, token := range []string{secrets["a wrong token"], ""} {
		for _, path := range []string{"/rule/browse?uid=1", "/rule/update?uid=1", "/rule/feedback?uid=1", "/nope"} {
			v.http("of koala", http.MethodPost, "http://"+p.printed(t, "koala's calls:")+path, "[rules]\nrule : x\n", token)
		}
	}
	redistest.Eventually(t, "telemetry fails", func() bool { return strings.Contains(p.logs.String(), "telemetry not sent") })
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("the service ends with %v", err)
	}
	p.stopped = true
	w.hear("output", p.out.String())
	w.hear("log", p.logs.String())
	w.check(t, secrets, nil, "admin /debug/pprof/cmdline", "http://", "output", "log")
}

// TestNoSecretsOfEnvoy takes the place of envoyproxy/ratelimit, with its variables.
func TestNoSecretsOfEnvoy(t *testing.T) {
	t.Parallel()
	node := redistest.Server(t)
	secrets := map[string]string{"the Redis password": "redis-swordfish"}
	hidden := map[string]string{"the key of a user": "ann-4711-hidden"}
	node.Must("CONFIG", "SET", "requirepass", secrets["the Redis password"])
	dir := t.TempDir()
	file := "domain: edge\ndescriptors:\n  - key: user\n    detailed_metric: true\n    rate_limit: {unit: hour, requests_per_unit: 1}\n"
	if err := os.WriteFile(filepath.Join(dir, "edge.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &witness{}
	p := startProcess(t, exports(map[string]string{"REDIS_AUTH": secrets["the Redis password"], "REDIS_URL": node.Addr(), "USE_PROMETHEUS": "true"}), "",
		"--envoy-config", dir, "--nodes 1 --log-level debug --log-keys none")
	v := &visitor{t: t, w: w, p: p, secrets: secrets}
	for range 2 {
		v.http("of Envoy", http.MethodPost, p.api+"/json", fmt.Sprintf(`{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":%q}]}]}`, hidden["the key of a user"]), "")
	}
	v.debug("of Envoy", "")
	node.Must("CONFIG", "SET", "requirepass", "another")
	node.Kill()
	v.http("of Envoy", http.MethodPost, p.api+"/json", `{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"1"}]}]}`, "")
	v.debug("of Envoy", "")
	w.hearProcess(t, "service", p, secrets)
	w.check(t, secrets, hidden, "admin /stats", "admin /rlconfig", "service log")
}
