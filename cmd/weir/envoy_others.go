package main

import (
	"fmt"
	"slices"
	"strings"
)

// envoyOther is a variable of envoyproxy/ratelimit, or several, that weir does not
// follow.
type envoyOther struct {
	// name is the variable. With a star at its end it stands for all whose names
	// begin like this, but for those that another row names.
	name string

	// why says what weir does instead.
	why string

	// same are the values that mean what weir does. The values 0 and false, which
	// turn something off, are always among them.
	same []string

	// refused reports that weir does not start with another value. Otherwise it
	// logs a warning.
	refused bool
}

// envoyOthers are the variables that weir does not follow. docs/envoy.md has the same
// rows.
var envoyOthers = []envoyOther{
	{name: "CONFIG_TYPE", why: "weir reads rule files, and no xDS server: mount the files, and unset it", same: []string{"FILE"}, refused: true},
	{name: "BACKEND_TYPE", why: "weir counts in Redis or in memory, and not in memcached: set REDIS_URL or --store, and unset it", same: []string{"redis"}, refused: true},
	{name: "REDIS_PERSECOND", why: "weir keeps limits per second in the same Redis as all others, and needs no second one: set it to false", refused: true},
	{name: "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", why: "weir checks the name in Redis's certificate: use --store rediss://HOST:PORT?server_name=NAME, and unset it", refused: true},
	{name: "GRPC_CLIENT_TLS_SAN", why: "weir finds the names of certificates in a tokens file: use --tokens with a line NAME cert:SAN scopes=decide, and unset it", refused: true},

	{name: "REDIS_PERSECOND_*", why: "the same Redis keeps limits per second"},
	{name: "CONFIG_GRPC_XDS_*", why: "they are for xDS only"},
	{name: "XDS_CLIENT_*", why: "they are for xDS only"},
	{name: "MEMCACHE_*", why: "they are for memcached only"},
	{name: "FORCE_START_WITHOUT_INITIAL_CONFIG", why: "weir starts with rule files only"},
	{name: "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", why: "weir starts with rule files only, and is healthy then", same: []string{"true"}},
	{name: "RUNTIME_IGNOREDOTFILES", why: "files whose names begin with a dot are never read", same: []string{"true"}},
	{name: "RUNTIME_WATCH_ROOT", why: "weir notices changed files either way", same: []string{"true"}},
	{name: "GRPC_MAX_CONNECTION_AGE", why: "connections stay open as long as they are used"},
	{name: "GRPC_MAX_CONNECTION_AGE_GRACE", why: "connections stay open as long as they are used"},
	{name: "LOCAL_CACHE_SIZE_IN_BYTES", why: "weir needs no cache of exceeded limits"},
	{name: "EXPIRATION_JITTER_MAX_SECONDS", why: "keys expire with their windows"},
	{name: "REDIS_POOL_SIZE", why: "weir shares few connections among all calls"},
	{name: "REDIS_POOL_ON_EMPTY_BEHAVIOR", why: "weir shares few connections among all calls", same: []string{"WAIT"}},
	{name: "REDIS_PIPELINE_WINDOW", why: "weir sends together what waits at the same time"},
	{name: "REDIS_PIPELINE_LIMIT", why: "weir sends together what waits at the same time"},
	{name: "REDIS_USE_EXPLICIT_PIPELINE", why: "weir sends together what waits at the same time"},
	{name: "USE_STATSD", why: "metrics are at /metrics of the admin address"},
	{name: "USE_DOG_STATSD", why: "metrics are at /metrics of the admin address"},
	{name: "USE_DOG_STATSD_MOGRIFIERS", why: "metrics are at /metrics of the admin address"},
	{name: "STATSD_*", why: "metrics are at /metrics of the admin address"},
	{name: "STATS_FLUSH_INTERVAL", why: "metrics are at /metrics of the admin address"},
	{name: "DISABLE_STATS", why: "weir counts what its metrics and /stats show in any case"},
	{name: "EXTRA_TAGS", why: "Prometheus adds labels when it reads the metrics"},
	{name: "PROMETHEUS_ADDR", why: "metrics are at /metrics of the admin address"},
	{name: "PROMETHEUS_PATH", why: "metrics are at /metrics of the admin address", same: []string{"/metrics"}},
	{name: "PROMETHEUS_MAPPER_YAML", why: "the metrics have the names of the default mapper"},
	{name: "TRACING_*", why: "weir sends traces with --otlp-endpoint"},
}

// others returns a warning for each variable of e that weir does not follow. The error
// says which one it refuses.
func (e envoyEnvironment) others() (warnings []string, err error) {
	for _, name := range e.names {
		o := otherOf(name)
		value := ""
		if o != nil {
			value = e.get(name)
		}
		switch {
		case value == "", value == "0", strings.EqualFold(value, "false"):
		case slices.ContainsFunc(o.same, func(s string) bool { return strings.EqualFold(s, value) }):
		case o.refused:
			return nil, &usageError{fmt.Sprintf("%s=%s: %s", name, value, o.why)}
		default:
			warnings = append(warnings, fmt.Sprintf("%s has no effect: %s", name, o.why))
		}
	}
	return warnings, nil
}

// otherOf returns the row of a variable, or nil.
func otherOf(name string) (found *envoyOther) {
	for i := range envoyOthers {
		o := &envoyOthers[i]
		start, all := strings.CutSuffix(o.name, "*")
		switch {
		case o.name == name:
			return o
		case all && strings.HasPrefix(name, start):
			found = o
		}
	}
	return found
}
