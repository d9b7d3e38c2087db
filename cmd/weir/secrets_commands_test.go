package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/internal/redistest"
)

// TestNoSecretsInErrors runs commands with secrets in variables, files and arguments, most
// of them wrong in some way, and looks for the secrets in what the commands print.
func TestNoSecretsInErrors(t *testing.T) {
	t.Parallel()
	node := redistest.Server(t)
	// Special characters are where a URL or a file is read wrong.
	const core = "swordfish"
	password, token := core+"/x@y%z:1", access.NewToken()
	node.Must("ACL", "SETUSER", "weir", "on", ">"+password, "~*", "&*", "+@all")
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		writeFile(t, path, text)
		return path
	}
	_, key, _ := selfSigned(t)
	pem := readFile(t, key)
	good := "redis://" + url.UserPassword("weir", password).String() + "@" + node.Addr()
	rules := write("rules.yaml", secretRules)
	tokens := write("tokens", access.Line("shop", token, access.All, ""))
	koalaRules := write("koala_rule.conf", "[dicts]\n[rules]\n")
	main := func(name, text string) string { return write(name, "rule_file = "+koalaRules+"\n"+text+"\n") }
	serve := "serve --listen 127.0.0.1:0 --admin 127.0.0.1:0 --rules " + rules + " "
	wrong := map[string]string{ // URLs of stores that are wrong
		"another password": strings.Replace(good, core, core+"2", 1),
		"no host":          strings.ReplaceAll(good, node.Addr(), ""),
		"a bad port":       strings.ReplaceAll(good, node.Addr(), "127.0.0.1:port"),
		"not escaped":      "redis://weir:" + password + "@" + node.Addr(),
		"a bad escape":     "redis://weir:" + core + "%zz@" + node.Addr(),
		"a bad scheme":     strings.Replace(good, "redis", "rdis", 1),
		"no scheme":        strings.TrimPrefix(good, "redis://"),
		"a bad option":     good + "?pasword=" + core,
		"two bad options":  good + "?sentinel_password=" + core + "&timeout=x",
		"no server":        strings.Replace(good, node.Addr(), "127.0.0.1:1", 1) + "?timeout=10ms",
		"TLS":              strings.Replace(good, "redis", "rediss", 1),
		"no Sentinel":      strings.Replace(good, "redis", "redis+sentinel", 1) + "/primary?sentinel_password=" + core,
		"no cluster":       strings.Replace(good, "redis", "redis+cluster", 1),
	}
	type try struct {
		what, env, args string
	}
	var tries []try
	for what, at := range wrong {
		tries = append(tries,
			try{"doctor, " + what, "WEIR_STORE=" + at, "doctor"},
			try{"doctor --store, " + what, "", "doctor --store " + at},
			try{"doctor --json, " + what, "WEIR_STORE=" + at, "doctor --json"},
			try{"inspect, " + what, "WEIR_STORE=" + at, "inspect weir:secret"},
		)
		if what != "no server" && what != "no Sentinel" && what != "TLS" { // with which the service starts
			tries = append(tries, try{"serve, " + what, "WEIR_STORE=" + at, serve})
		}
	}
	tries = append(tries, []try{
		{"doctor", "WEIR_STORE=" + good, "doctor"},
		{"an argument for the store", "", serve + good},
		{"a flag that is not there", "", "serve --stroe=" + good},
		{"a command that is not there", "", good},
		{"a token that is short", "WEIR_TOKEN=" + core, serve},
		{"a token with a blank", "WEIR_TOKEN=" + strings.Repeat(core+" ", 4), serve},
		{"a secret of hashes without use", "WEIR_LOG_KEYS_SECRET=" + core, serve},
		{"a key as certificate", "", serve + "--listen https://127.0.0.1:0 --tls-cert " + key + " --tls-key " + key},
		{"a key as authority", "", serve + "--listen https://127.0.0.1:0 --tls-cert " + key + " --tls-key " + key + " --tls-client-ca " + key},
		{"a key as tokens", "", serve + "--tokens " + key},
		{"a token as tokens file", "", serve + "--tokens " + write("token", token)},
		{"a key as rules", "", "check " + key},
		{"tokens as rules", "", "check " + tokens},
		{"a key as koala's rules", "", "import koala " + key},
		{"tokens as koala's rules", "", "serve --koala " + tokens},
		{"a key as Envoy's rules", "", "import envoy " + key},
		{"tokens as a test", "", "test " + tokens},
		{"a key as a log", "", "replay --rules " + rules + " " + key},
		{"tokens as a log", "", "replay --rules " + rules + " " + tokens},
		{"tokens as a data directory", "", "data check " + tokens},
		{"an endpoint", "", serve + "--otlp-endpoint http://weir:" + core + "@127.0.0.1:port"},
		{"an endpoint of another scheme", "", serve + "--otlp-endpoint ftp://weir:" + core + "@127.0.0.1:1"},
		{"a variable with an endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT=http://weir:" + core + "%zz@127.0.0.1:1", serve},
		{"headers for the collector", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_HEADERS=" + core, serve},
		{"an escape in headers for the collector", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_HEADERS=x=" + core + "%zz", serve},
		{"a name in headers for the collector", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_TRACES_HEADERS=Bearer " + core + "=", serve},
		{"koala's main file", "", "serve --koala-config " + main("koala.conf", "redis_server = 127.0.0.1:port\nredis_auth = "+core)},
		{"koala's main file without =", "", "serve --koala-config " + main("koala1.conf", "redis_auth "+core)},
		{"koala's main file with another key", "", "serve --listen x --koala-config " + main("koala2.conf", "redis_password = "+core)},
		{"koala's main file with a URL", "", "serve --koala-config " + main("koala3.conf", "redis_server = redis://:"+core+"@127.0.0.1:6379")},
		{"import of koala's main file", "", "import koala " + main("koala4.conf", "redis_auth "+core)},
		{"Envoy's Sentinel", "REDIS_TYPE=sentinel REDIS_URL=redis://:" + core + "@127.0.0.1:1", "serve --envoy-config " + dir},
		{"Envoy's URL", "REDIS_URL=:" + core + "@127.0.0.1:port", "serve --envoy-config " + dir},
		{"Envoy's password", "REDIS_AUTH=" + core + " REDIS_URL=127.0.0.1:port", "serve --envoy-config " + dir},
		{"Envoy's cluster", "REDIS_AUTH=" + core + " REDIS_TYPE=nope REDIS_URL=127.0.0.1:1", "serve --envoy-config " + dir},
		{"Envoy's second Redis", "REDIS_AUTH=" + core + " REDIS_PERSECOND=true REDIS_PERSECOND_AUTH=" + core + " REDIS_PERSECOND_URL=x", "serve --envoy-config " + dir},
		{"an address with a password", "WEIR_TOKEN=" + token + " WEIR_ADDR=http://weir:" + core + "@127.0.0.1:1", "rules"},
		{"an address that is wrong", "WEIR_ADDR=http://weir:" + core + "%zz@127.0.0.1:1", "rules"},
		{"an address of another service", "WEIR_TOKEN=" + token + " WEIR_ADDR=http://weir:" + core + "@" + node.Addr(), "usage posts user=ann"},
		{"a token that cannot be sent", "WEIR_TOKEN=" + core + "\n WEIR_ADDR=http://127.0.0.1:1", "rules"},
	}...)
	secrets := map[string]string{"the password": core, "the token": token, "the TLS key": strings.Split(pem, "\n")[1]}
	w := &witness{}
	for _, try := range tries {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "weir", strings.Fields(try.args)...)
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
		cmd.Env = append(cmd.Env, variables(try.env)...)
		out, err := cmd.CombinedOutput()
		cancel()
		// A store that answers late counts as an outage, with which the service starts.
		if ctx.Err() == context.DeadlineExceeded && !strings.HasPrefix(try.env, "WEIR_STORE=") {
			t.Errorf("%s: weir %s: runs and runs", try.what, try.args)
		}
		if err == nil && try.what != "doctor" {
			t.Errorf("%s: weir %s: got no error:\n%s", try.what, try.args, out)
		}
		w.hear(try.what, string(out))
	}
	w.check(t, secrets, nil, "doctor", "serve", "inspect")
}

// variables returns the variables in text: words with NAME= begin a new one.
func variables(text string) (all []string) {
	for _, word := range strings.Split(text, " ") {
		if name, _, ok := strings.Cut(word, "="); ok && name == strings.ToUpper(name) {
			all = append(all, word)
		} else if len(all) > 0 {
			all[len(all)-1] += " " + word
		}
	}
	return all
}

// TestNoSecretsOfFlags gives secrets as flags, which other users of the machine can read. No page, log or answer of the service shows them.
func TestNoSecretsOfFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		writeFile(t, path, text)
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
	p.end(t)
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
	writeFile(t, filepath.Join(dir, "edge.yaml"), file)
	w := &witness{}
	p := startProcess(t, exports(map[string]string{"REDIS_AUTH": secrets["the Redis password"], "REDIS_URL": node.Addr(), "USE_PROMETHEUS": "true"}), "",
		"--envoy-config", dir, "--grpc-listen 127.0.0.1:0 --nodes 1 --log-level debug --log-keys none")
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
