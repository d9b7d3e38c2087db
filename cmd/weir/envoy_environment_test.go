package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// readEnvoy reads an environment as weir serve --envoy-env does, and returns the names
// of the variables that were read, too.
func readEnvoy(t *testing.T, values map[string]string) (config.Config, map[string]bool, error) {
	t.Helper()
	read := map[string]bool{}
	e := envoyEnvironment{
		get:   func(name string) string { read[name] = true; return values[name] },
		names: slices.Sorted(maps.Keys(values)),
	}
	cfg := config.Default()
	err := e.read(newServe(), &cfg, true)
	return cfg, read, err
}

// The environment of envoyproxy/ratelimit becomes addresses, files and a store.
func TestEnvoyEnvironment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values, want map[string]string
		warnings     int
	}{
		"nothing": {nil, map[string]string{
			"http": "127.0.0.1:8080", "grpc": "127.0.0.1:8081", "admin": "127.0.0.1:6070", "store": "", "dir": "/srv/runtime_data/current/config",
		}, 0},
		"addresses": {map[string]string{"HOST": "10.0.0.1", "PORT": "80", "GRPC_PORT": "81", "DEBUG_PORT": "82", "RUNTIME_ROOT": "/data", "RUNTIME_SUBDIRECTORY": "rl"},
			map[string]string{"http": "10.0.0.1:80", "grpc": "127.0.0.1:81", "admin": "127.0.0.1:82", "dir": "/data/rl/config"}, 0},
		"a socket": {map[string]string{"GRPC_UDS": "/run/rl.sock"}, map[string]string{"grpc": "unix:/run/rl.sock"}, 0},
		"TLS": {map[string]string{"GRPC_SERVER_USE_TLS": "true", "GRPC_SERVER_TLS_CERT": "c.pem", "GRPC_SERVER_TLS_KEY": "k.pem", "GRPC_CLIENT_TLS_CACERT": "ca.pem"},
			map[string]string{"http": "127.0.0.1:8080", "grpc": "https://127.0.0.1:8081", "cert": "c.pem", "key": "k.pem", "ca": "ca.pem"}, 0},
		"one Redis": {map[string]string{"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "r:6379", "REDIS_AUTH": "p@ss", "REDIS_TIMEOUT": "20ms", "CACHE_KEY_PREFIX": "rl:"},
			map[string]string{"store": "redis://:p%40ss@r:6379?prefix=rl%3A&timeout=20ms"}, 0},
		"old connections": {map[string]string{"GRPC_MAX_CONNECTION_AGE": "24h", "GRPC_MAX_CONNECTION_AGE_GRACE": "5m"}, map[string]string{"age": "24h0m0s", "grace": "5m0s"}, 0},
		"a URL":           {map[string]string{"REDIS_URL": "rediss://r:6379"}, map[string]string{"store": "rediss://r:6379"}, 0},
		"a Redis here":    {map[string]string{"REDIS_SOCKET_TYPE": "unix", "REDIS_URL": "/run/redis.sock"}, map[string]string{"store": "unix:///run/redis.sock"}, 0},
		"a cluster": {map[string]string{"REDIS_TYPE": "CLUSTER", "REDIS_URL": "a:1,b:2", "REDIS_TLS": "true", "REDIS_TLS_CACERT": "ca.pem", "REDIS_PIPELINE_WINDOW": "150us"},
			map[string]string{"store": "rediss+cluster://a:1,b:2?ca=ca.pem"}, 1},
		"sentinels": {map[string]string{"REDIS_TYPE": "SENTINEL", "REDIS_URL": "main,a:1,b:2", "REDIS_SENTINEL_AUTH": "u:p", "REDIS_AUTH": "u2:p2"},
			map[string]string{"store": "redis+sentinel://u2:p2@a:1,b:2/main?sentinel_password=p&sentinel_username=u"}, 0},
		"a level": {map[string]string{"LOG_LEVEL": "TRACE"}, map[string]string{"level": "debug"}, 0},
		"a pod": {map[string]string{
			"CONFIG_TYPE": "FILE", "BACKEND_TYPE": "redis", "REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "r:6379", "USE_STATSD": "false", "USE_PROMETHEUS": "true",
			"PROMETHEUS_ADDR": ":19001", "RUNTIME_IGNOREDOTFILES": "true", "RUNTIME_WATCH_ROOT": "false", "LOCAL_CACHE_SIZE_IN_BYTES": "0", "FORCE_START_WITHOUT_INITIAL_CONFIG": "true",
		}, map[string]string{"store": "redis://r:6379", "metrics": ":19001"}, 1},
		"xDS": {map[string]string{
			"CONFIG_TYPE": "GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL": "x:1", "CONFIG_GRPC_XDS_NODE_ID": "n", "CONFIG_GRPC_XDS_NODE_METADATA": "a=1,b=c=d",
			"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "k:v", "CONFIG_GRPC_XDS_SERVER_USE_TLS": "true", "CONFIG_GRPC_XDS_SERVER_TLS_SAN": "s", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL": "2s",
			"XDS_CLIENT_BACKOFF_JITTER": "false", "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "1000", "FORCE_START_WITHOUT_INITIAL_CONFIG": "true",
		}, map[string]string{"dir": "", "xds": "{x:1 n map[a:1 b:c=d] map[k:v] true    s 2s 10s 0 1000 true}"}, 0},
		"xDS, healthy with rules": {map[string]string{
			"CONFIG_TYPE": "grpc_xds_sotw", "FORCE_START_WITHOUT_INITIAL_CONFIG": "true", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED": "true", "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL": "3s",
		}, map[string]string{"xds": "{localhost:18000 default map[] map[] false     500ms 10s 0.5 16777216 false}"}, 1},
	} {
		cfg, _, err := readEnvoy(t, tc.values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := map[string]string{
			"http": cfg.Listen, "grpc": cfg.GRPCListen, "admin": cfg.Admin, "store": cfg.Store, "dir": cfg.Envoy.Dir,
			"level": cfg.LogLevel, "metrics": cfg.MetricsListen, "age": cfg.GRPCAge.String(), "grace": cfg.GRPCAgeGrace.String(), "cert": cfg.Access.TLSCert, "key": cfg.Access.TLSKey, "ca": cfg.Access.TLSClientCA,
		}
		if x := cfg.Envoy.XDS; x != nil {
			got["xds"] = fmt.Sprint(*x)
		}
		for field, want := range tc.want {
			if got[field] != want {
				t.Errorf("%s: got %s %q, want %q", name, field, got[field], want)
			}
		}
		if len(cfg.Warnings) != tc.warnings {
			t.Errorf("%s: got warnings %q, want %d", name, cfg.Warnings, tc.warnings)
		}
	}
}

// Each variable that weir does not follow has its line: an error or a warning that names
// it. Values that turn something off have none.
func TestEnvoyOthers(t *testing.T) {
	t.Parallel()
	for _, o := range envoyOthers {
		name := strings.Replace(o.name, "*", "ANY", 1)
		cfg, _, err := readEnvoy(t, map[string]string{name: "other"})
		switch {
		case o.refused && (err == nil || !strings.HasPrefix(err.Error(), name+"=other: ")):
			t.Errorf("%s: got %v, want an error", name, err)
		case !o.refused && (err != nil || len(cfg.Warnings) != 1 || !strings.HasPrefix(cfg.Warnings[0], name+" has no effect: ")):
			t.Errorf("%s: got %v, %v, want a warning", name, cfg.Warnings, err)
		}
		for _, value := range append([]string{"0", "false"}, o.same...) {
			if cfg, _, err := readEnvoy(t, map[string]string{name: value}); err != nil || len(cfg.Warnings) > 0 {
				t.Errorf("%s=%s: got %v, %v, want neither", name, value, cfg.Warnings, err)
			}
		}
	}
}

// followed returns the variables that weir follows.
func followed(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, values := range []map[string]string{
		{"GRPC_SERVER_USE_TLS": "true", "REDIS_URL": "m,h:1", "REDIS_TYPE": "sentinel", "REDIS_TLS": "true"},
		{"CONFIG_TYPE": "GRPC_XDS_SOTW"},
	} {
		_, read, err := readEnvoy(t, values)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, read)
	}
	return all
}

// envoyVariables are the variables in the README and in src/settings/settings.go of
// envoyproxy/ratelimit, as of September 2026.
const envoyVariables = `
BACKEND_TYPE CACHE_KEY_PREFIX CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS CONFIG_GRPC_XDS_CLIENT_TLS_CERT
CONFIG_GRPC_XDS_CLIENT_TLS_KEY CONFIG_GRPC_XDS_NODE_ID CONFIG_GRPC_XDS_NODE_METADATA
CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL CONFIG_GRPC_XDS_SERVER_TLS_CACERT CONFIG_GRPC_XDS_SERVER_TLS_SAN
CONFIG_GRPC_XDS_SERVER_URL CONFIG_GRPC_XDS_SERVER_USE_TLS CONFIG_TYPE DEBUG_HOST DEBUG_PORT DISABLE_STATS
DOG_STATSD_MOGRIFIERS DOG_STATSD_MOGRIFIER_DOMAIN_NAME DOG_STATSD_MOGRIFIER_DOMAIN_PATTERN
DOG_STATSD_MOGRIFIER_DOMAIN_TAGS DOG_STATSD_MOGRIFIER_HITS_NAME DOG_STATSD_MOGRIFIER_HITS_PATTERN
DOG_STATSD_MOGRIFIER_HITS_TAGS EXPIRATION_JITTER_MAX_SECONDS EXTRA_TAGS FORCE_START_WITHOUT_INITIAL_CONFIG
GRPC_CLIENT_TLS_CACERT GRPC_CLIENT_TLS_SAN GRPC_HOST GRPC_MAX_CONNECTION_AGE GRPC_MAX_CONNECTION_AGE_GRACE
GRPC_PORT GRPC_SERVER_TLS_CERT GRPC_SERVER_TLS_KEY GRPC_SERVER_USE_TLS GRPC_UDS
HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED HOST LIMIT_LIMIT_HEADER LIMIT_REMAINING_HEADER
LIMIT_REQUEST_HEADERS_ENABLED LIMIT_REQUEST_LIMIT_HEADER LIMIT_REQUEST_REMAINING_HEADER
LIMIT_REQUEST_RESET_HEADER LIMIT_RESET_HEADER LIMIT_RESPONSE_HEADERS_ENABLED LOCAL_CACHE_SIZE_IN_BYTES
LOG_FORMAT LOG_LEVEL MEMCACHE_HOST_PORT MEMCACHE_MAX_IDLE_CONNS MEMCACHE_SRV MEMCACHE_SRV_REFRESH MEMCACHE_TLS
MEMCACHE_TLS_CACERT MEMCACHE_TLS_CLIENT_CERT MEMCACHE_TLS_CLIENT_KEY MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION
MERGE_DOMAIN_CONFIG NEAR_LIMIT_RATIO PORT PROMETHEUS_ADDR PROMETHEUS_MAPPER_YAML PROMETHEUS_PATH
PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS QUOTA_MODE REDIS_AUTH REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR
REDIS_CLUSTER_PIPELINE_PARALLELISM REDIS_HEALTH_CHECK_ACTIVE_CONNECTION REDIS_PERSECOND REDIS_PERSECOND_AUTH
REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM REDIS_PERSECOND_PIPELINE_LIMIT REDIS_PERSECOND_PIPELINE_WINDOW
REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR REDIS_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION REDIS_PERSECOND_POOL_SIZE
REDIS_PERSECOND_SENTINEL_AUTH REDIS_PERSECOND_SOCKET_TYPE REDIS_PERSECOND_TIMEOUT REDIS_PERSECOND_TLS
REDIS_PERSECOND_TYPE REDIS_PERSECOND_URL REDIS_PIPELINE_LIMIT REDIS_PIPELINE_WINDOW
REDIS_POOL_ON_EMPTY_BEHAVIOR REDIS_POOL_ON_EMPTY_WAIT_DURATION REDIS_POOL_SIZE REDIS_SENTINEL_AUTH
REDIS_SOCKET_TYPE REDIS_STARTUP_INITIAL_INTERVAL REDIS_STARTUP_MAX_ELAPSED_TIME REDIS_STARTUP_MAX_INTERVAL
REDIS_TIMEOUT REDIS_TLS REDIS_TLS_CACERT REDIS_TLS_CLIENT_CERT REDIS_TLS_CLIENT_KEY
REDIS_TLS_SKIP_HOSTNAME_VERIFICATION REDIS_TYPE REDIS_URL RESPONSE_DYNAMIC_METADATA RUNTIME_APPDIRECTORY
RUNTIME_IGNOREDOTFILES RUNTIME_ROOT RUNTIME_SUBDIRECTORY RUNTIME_WATCH_ROOT SANITIZE_DESCRIPTOR_METRIC_DOTS
SHADOW_MODE STATSD_HOST STATSD_PORT STATS_FLUSH_INTERVAL STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT
TRACING_ENABLED TRACING_EXPORTER_PROTOCOL TRACING_SAMPLING_RATE TRACING_SERVICE_INSTANCE_ID
TRACING_SERVICE_NAME TRACING_SERVICE_NAMESPACE USE_CALENDAR_MONTH_RATE_LIMIT USE_DOG_STATSD
USE_DOG_STATSD_MOGRIFIERS USE_PROMETHEUS USE_STATSD XDS_CLIENT_BACKOFF_INITIAL_INTERVAL
XDS_CLIENT_BACKOFF_JITTER XDS_CLIENT_BACKOFF_MAX_INTERVAL XDS_CLIENT_BACKOFF_RANDOM_FACTOR
XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES`

// weir follows each variable of envoyproxy/ratelimit, refuses it, or warns about it.
func TestEnvoyVariables(t *testing.T) {
	t.Parallel()
	follows := followed(t)
	for _, name := range strings.Fields(envoyVariables) {
		if !follows[name] && otherOf(name) == nil {
			t.Errorf("weir does not know %s", name)
		}
	}
}

// docs/guides/envoy.md has a table of the variables that weir follows, and one of the others.
func TestEnvoyVariablesOnPage(t *testing.T) {
	t.Parallel()
	src := readFile(t, "../../docs/guides/envoy.md")
	follows, others := map[string]bool{}, map[string]string{}
	quoted := regexp.MustCompile("`([A-Z][A-Z_]+\\*?)`")
	table := ""
	for line := range strings.Lines(src) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case len(cells) < 4:
			table = ""
		case strings.HasPrefix(strings.TrimSpace(cells[1]), "variable"):
			table = strings.TrimSpace(cells[2])
		case table == "meaning":
			for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
				follows[m[1]] = true
			}
		case table == "what weir does":
			for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
				others[m[1]] = strings.TrimSpace(cells[2])
			}
		}
	}
	all := followed(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !follows[name] {
			t.Errorf("the page has no %s, which weir follows", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(follows)) {
		if !all[name] {
			t.Errorf("the page has %s, which weir does not follow", name)
		}
	}
	for _, o := range envoyOthers {
		text, ok := others[o.name]
		if refuses := strings.HasPrefix(text, "refuses"); !ok || refuses != o.refused {
			t.Errorf("the page has %q about %s, want that weir refuses it: %v", text, o.name, o.refused)
		}
		delete(others, o.name)
	}
	for name := range others {
		t.Errorf("the page has %s, which weir does not know", name)
	}
}
