package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// envoyEnvironment is the environment of envoyproxy/ratelimit.
type envoyEnvironment struct {
	get   func(name string) string // empty: not set
	names []string                 // of all variables
}

// readEnvironment returns the environment of this process.
func readEnvironment() envoyEnvironment {
	e := envoyEnvironment{get: os.Getenv}
	for _, line := range os.Environ() {
		name, _, _ := strings.Cut(line, "=")
		e.names = append(e.names, name)
	}
	slices.Sort(e.names)
	return e
}

// into sets *to to the variable called name, if it is set.
func into[T any](e envoyEnvironment, name string, to *T, parse func(string) (T, error)) error {
	value := e.get(name)
	if value == "" {
		return nil
	}
	got, err := parse(value)
	if err != nil {
		return wrongValue(name, value, err)
	}
	*to = got
	return nil
}

// float parses a number.
func float(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// only returns parse for the values that ok accepts, or an error that says what to want.
func only[T any](parse func(string) (T, error), ok func(T) bool, want string) func(string) (T, error) {
	return func(text string) (T, error) {
		got, err := parse(text)
		if err == nil && !ok(got) {
			err = errors.New("want " + want)
		}
		return got, err
	}
}

// read sets the fields of cfg that e has and that no flag sets. paths reports whether e names
// the rule files.
func (e envoyEnvironment) read(cmd *cobra.Command, cfg *config.Config, paths bool) error {
	given := cmd.Flags().Changed
	if err := e.readXDS(cfg); err != nil {
		return err
	}
	if paths && !given("envoy-config") && cfg.Envoy.XDS == nil {
		cfg.Envoy.Dir = filepath.Join(cmp.Or(e.get("RUNTIME_ROOT"), "/srv/runtime_data/current"),
			e.get("RUNTIME_SUBDIRECTORY"), cmp.Or(e.get("RUNTIME_APPDIRECTORY"), "config"))
	}
	warnings, err := e.others(cfg.Envoy.XDS != nil)
	if err != nil {
		return err
	}
	cfg.Warnings = append(cfg.Warnings, warnings...)
	envoy, headers := &cfg.Envoy, false
	if err := cmp.Or(
		into(e, "SHADOW_MODE", &envoy.Shadow, strconv.ParseBool),
		into(e, "QUOTA_MODE", &envoy.Quota, strconv.ParseBool),
		into(e, "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", &envoy.Together, strconv.ParseBool),
		into(e, "MERGE_DOMAIN_CONFIG", &envoy.MergeDomains, strconv.ParseBool),
		into(e, "RESPONSE_DYNAMIC_METADATA", &envoy.Metadata, strconv.ParseBool),
		into(e, "USE_CALENDAR_MONTH_RATE_LIMIT", &envoy.CalendarMonths, strconv.ParseBool),
		into(e, "LIMIT_REQUEST_HEADERS_ENABLED", &envoy.RequestHeaders, strconv.ParseBool),
		into(e, "SANITIZE_DESCRIPTOR_METRIC_DOTS", &envoy.NoDots, strconv.ParseBool),
		into(e, "USE_PROMETHEUS", &envoy.Metrics, strconv.ParseBool),
		into(e, "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", &cfg.ReadyNeedsStore, strconv.ParseBool),
		into(e, "NEAR_LIMIT_RATIO", &envoy.NearLimit, float),
		into(e, "LIMIT_RESPONSE_HEADERS_ENABLED", &headers, strconv.ParseBool),
	); err != nil {
		return err
	}
	envoy.Headers = envoy.Headers || headers && !given("envoy-headers")
	for name, to := range map[string]*string{
		"LIMIT_REQUEST_LIMIT_HEADER": &envoy.RequestLimit, "LIMIT_REQUEST_REMAINING_HEADER": &envoy.RequestRemaining, "LIMIT_REQUEST_RESET_HEADER": &envoy.RequestReset,
		"LIMIT_LIMIT_HEADER": &envoy.Limit, "LIMIT_REMAINING_HEADER": &envoy.Remaining, "LIMIT_RESET_HEADER": &envoy.Reset,
		"PROMETHEUS_PATH": &cfg.MetricsPath,
	} {
		*to = cmp.Or(e.get(name), *to)
	}
	for _, a := range []struct {
		flag, host, port, usual string
		to                      *string
	}{
		{"listen", "HOST", "PORT", "8080", &cfg.Listen},
		{"grpc-listen", "GRPC_HOST", "GRPC_PORT", "8081", &cfg.GRPCListen},
		{"admin", "DEBUG_HOST", "DEBUG_PORT", "6070", &cfg.Admin},
	} {
		if !given(a.flag) {
			*a.to = net.JoinHostPort(cmp.Or(e.get(a.host), "127.0.0.1"), cmp.Or(e.get(a.port), a.usual))
		}
	}
	if at := e.get("PROMETHEUS_ADDR"); cfg.Envoy.Metrics && !given("metrics-listen") {
		cfg.MetricsListen = at
	}
	if err := e.readGRPC(cfg, given); err != nil {
		return err
	}
	if at := e.get("REDIS_URL"); at != "" && cfg.Store == "" && !given("store") {
		if cfg.Store, err = e.store(at); err != nil {
			return err
		}
	}
	if level := e.get("LOG_LEVEL"); level != "" && !given("log-level") {
		cfg.LogLevel = strings.ToLower(level)
		cfg.LogLevel = cmp.Or(levels[cfg.LogLevel], cfg.LogLevel)
	}
	if format := e.get("LOG_FORMAT"); format != "" && !given("log-format") {
		cfg.LogFormat = strings.ToLower(format)
	}
	return nil
}

// readXDS sets the management server that sends the rules, if e names one.
func (e envoyEnvironment) readXDS(cfg *config.Config) (err error) {
	if kind := e.get("CONFIG_TYPE"); strings.EqualFold(kind, "FILE") || kind == "" {
		return nil
	} else if !strings.EqualFold(kind, "GRPC_XDS_SOTW") {
		return &usageError{fmt.Sprintf("CONFIG_TYPE=%s: want FILE or GRPC_XDS_SOTW", kind)}
	}
	x := &config.XDS{
		Server: cmp.Or(e.get("CONFIG_GRPC_XDS_SERVER_URL"), "localhost:18000"),
		Node:   cmp.Or(e.get("CONFIG_GRPC_XDS_NODE_ID"), "default"),
		Cert:   e.get("CONFIG_GRPC_XDS_CLIENT_TLS_CERT"), Key: e.get("CONFIG_GRPC_XDS_CLIENT_TLS_KEY"),
		CA: e.get("CONFIG_GRPC_XDS_SERVER_TLS_CACERT"), ServerName: e.get("CONFIG_GRPC_XDS_SERVER_TLS_SAN"),
		RetryAfter: 500 * time.Millisecond, MaxRetryAfter: 10 * time.Second, RetryJitter: 0.5, MaxMessage: 16 << 20,
	}
	if x.Metadata, err = e.pairs("CONFIG_GRPC_XDS_NODE_METADATA", "="); err != nil {
		return err
	}
	if x.Headers, err = e.pairs("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", ":"); err != nil {
		return err
	}
	wait := only(time.ParseDuration, func(d time.Duration) bool { return d > 0 }, "a duration above 0, such as 10s")
	starts, waits, jitter := false, false, true
	err = cmp.Or(
		into(e, "CONFIG_GRPC_XDS_SERVER_USE_TLS", &x.TLS, strconv.ParseBool),
		into(e, "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", &x.RetryAfter, wait),
		into(e, "XDS_CLIENT_BACKOFF_MAX_INTERVAL", &x.MaxRetryAfter, wait),
		into(e, "XDS_CLIENT_BACKOFF_RANDOM_FACTOR", &x.RetryJitter, only(float, func(f float64) bool { return f >= 0 && f <= 1 }, "a part from 0 to 1")),
		into(e, "XDS_CLIENT_BACKOFF_JITTER", &jitter, strconv.ParseBool),
		into(e, "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", &x.MaxMessage, only(strconv.Atoi, func(n int) bool { return n > 0 }, "a number of bytes above 0")),
		into(e, "FORCE_START_WITHOUT_INITIAL_CONFIG", &starts, strconv.ParseBool),
		into(e, "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", &waits, strconv.ParseBool),
	)
	if !jitter {
		x.RetryJitter = 0
	}
	x.ReadyWithout = starts && !waits
	cfg.Envoy.XDS = x
	return err
}

// pairs returns a variable that has pairs of a name and a value, separated by commas.
func (e envoyEnvironment) pairs(name, between string) (map[string]string, error) {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(e.get(name), ",") {
		key, value, ok := strings.Cut(pair, between)
		switch {
		case ok && key != "":
			pairs[key] = value
		case pair != "":
			return nil, &usageError{fmt.Sprintf("%s: want NAME%sVALUE, separated by commas", name, between)} // a value can be secret
		}
	}
	return pairs, nil
}

// levels has weir's names of the levels that envoyproxy/ratelimit names otherwise.
var levels = map[string]string{"panic": "error", "fatal": "error", "warning": "warn", "trace": "debug"}

// wrongValue returns the error of a variable whose value cannot be read. Errors of
// package strconv repeat the value.
func wrongValue(name, value string, err error) error {
	if number, ok := err.(*strconv.NumError); ok { //nolint:errorlint // strconv returns it as it is
		err = number.Err
	}
	return &usageError{fmt.Sprintf("%s=%s: %v", name, value, err)}
}

// readGRPC sets the address of gRPC calls, and its TLS.
func (e envoyEnvironment) readGRPC(cfg *config.Config, given func(flag string) bool) error {
	path := e.get("GRPC_UDS")
	if path != "" && !given("grpc-listen") {
		cfg.GRPCListen = "unix:" + path
	}
	secure := false
	if err := into(e, "GRPC_SERVER_USE_TLS", &secure, strconv.ParseBool); err != nil {
		return err
	}
	for _, a := range []struct {
		flag, name string
		to         *time.Duration
	}{
		{"grpc-max-connection-age", "GRPC_MAX_CONNECTION_AGE", &cfg.GRPCAge},
		{"grpc-max-connection-age-grace", "GRPC_MAX_CONNECTION_AGE_GRACE", &cfg.GRPCAgeGrace},
	} {
		if given(a.flag) {
			continue
		}
		if err := into(e, a.name, a.to, time.ParseDuration); err != nil {
			return err
		}
	}
	if !secure {
		return nil
	}
	if !given("grpc-listen") {
		if path != "" {
			return &usageError{"GRPC_SERVER_USE_TLS=true: a Unix socket has no TLS; unset it or GRPC_UDS"}
		}
		cfg.GRPCListen = "https://" + cfg.GRPCListen
	}
	for _, f := range []struct {
		flag, name string
		to         *string
	}{
		{"tls-cert", "GRPC_SERVER_TLS_CERT", &cfg.Access.TLSCert},
		{"tls-key", "GRPC_SERVER_TLS_KEY", &cfg.Access.TLSKey},
		{"tls-client-ca", "GRPC_CLIENT_TLS_CACERT", &cfg.Access.TLSClientCA},
	} {
		if !given(f.flag) {
			*f.to = cmp.Or(e.get(f.name), *f.to)
		}
	}
	return nil
}

// store returns the URL of the store that the REDIS_ variables describe.
func (e envoyEnvironment) store(at string) (string, error) {
	secure := false
	if err := into(e, "REDIS_TLS", &secure, strconv.ParseBool); err != nil {
		return "", err
	}
	secure = e.get("REDIS_SOCKET_TYPE") == "tls" || secure
	if inner, ok := strings.CutPrefix(at, "rediss://"); ok {
		at, secure = inner, true
	}
	at = strings.TrimPrefix(at, "redis://")
	u := url.URL{Scheme: "redis", Host: at}
	if secure {
		u.Scheme = "rediss"
	}
	q := url.Values{}
	switch kind := strings.ToLower(cmp.Or(e.get("REDIS_TYPE"), "single")); kind {
	case "single":
		if path, socket := strings.CutPrefix(at, "unix://"); socket || strings.HasPrefix(at, "/") {
			u = url.URL{Scheme: "unix", Path: path}
		}
	case "cluster":
		u.Scheme += "+cluster"
	case "sentinel":
		name, hosts, ok := strings.Cut(at, ",")
		if !ok {
			return "", &usageError{"REDIS_URL: with REDIS_TYPE=sentinel want NAME,HOST:PORT,…"} // its text can have a password
		}
		u.Scheme, u.Host, u.Path = u.Scheme+"+sentinel", hosts, "/"+name
		if password := e.get("REDIS_SENTINEL_AUTH"); password != "" {
			user, only, ok := strings.Cut(password, ":")
			if ok {
				q.Set("sentinel_username", user)
				password = only
			}
			q.Set("sentinel_password", password)
		}
	default:
		return "", &usageError{fmt.Sprintf("REDIS_TYPE=%s: want single, sentinel or cluster", kind)}
	}
	if auth := e.get("REDIS_AUTH"); auth != "" {
		user, password, ok := strings.Cut(auth, ":")
		if !ok {
			user, password = "", auth
		}
		u.User = url.UserPassword(user, password)
	}
	options := map[string]string{"CACHE_KEY_PREFIX": "prefix", "REDIS_TIMEOUT": "timeout"}
	if secure {
		options["REDIS_TLS_CACERT"], options["REDIS_TLS_CLIENT_CERT"], options["REDIS_TLS_CLIENT_KEY"] = "ca", "cert", "key"
	}
	for name, option := range options {
		if value := e.get(name); value != "" {
			q.Set(option, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// envoyOther is a variable of envoyproxy/ratelimit, or several, that weir does not
// follow.
type envoyOther struct {
	// name is the variable. A star at its end matches all variables with this prefix
	// that no other row names.
	name string

	// why states what weir does instead.
	why string

	// same are the values with the same meaning as weir's behaviour. The values 0 and
	// false, which turn something off, always belong to them.
	same []string

	// refused reports that weir does not start with another value. Otherwise it
	// logs a warning.
	refused bool

	// xds reports that weir follows it if an xDS server sends the rules.
	xds bool
}

// envoyOthers are the variables that weir does not follow. docs/guides/envoy.md has the same
// rows.
var envoyOthers = []envoyOther{
	{name: "BACKEND_TYPE", why: "weir counts in Redis or in memory, and not in memcached: set REDIS_URL or --store, and unset it", same: []string{"redis"}, refused: true},
	{name: "REDIS_PERSECOND", why: "weir keeps limits per second in the same Redis as all others, and needs no second one: set it to false", refused: true},
	{name: "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", why: "weir checks the name in Redis's certificate: use --store rediss://HOST:PORT?server_name=NAME, and unset it", refused: true},
	{name: "GRPC_CLIENT_TLS_SAN", why: "weir finds the names of certificates in a tokens file: use --tokens with a line NAME cert:SAN scopes=decide, and unset it", refused: true},

	{name: "REDIS_PERSECOND_*", why: "the same Redis keeps limits per second"},
	{name: "CONFIG_GRPC_XDS_*", why: "it is for CONFIG_TYPE=GRPC_XDS_SOTW", xds: true},
	{name: "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", why: "the XDS_CLIENT_BACKOFF_ variables say when weir connects again"},
	{name: "XDS_CLIENT_*", why: "it is for CONFIG_TYPE=GRPC_XDS_SOTW", xds: true},
	{name: "MEMCACHE_*", why: "they are for memcached only"},
	{name: "FORCE_START_WITHOUT_INITIAL_CONFIG", why: "weir starts with rule files only, unless an xDS server sends the rules", xds: true},
	{name: "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", why: "weir starts with rule files only, and is healthy then", same: []string{"true"}, xds: true},
	{name: "RUNTIME_IGNOREDOTFILES", why: "files whose names begin with a dot are never read", same: []string{"true"}},
	{name: "RUNTIME_WATCH_ROOT", why: "weir notices changed files either way", same: []string{"true"}},
	{name: "LOCAL_CACHE_SIZE_IN_BYTES", why: "weir needs no cache of exceeded limits"},
	{name: "EXPIRATION_JITTER_MAX_SECONDS", why: "keys expire with their windows"},
	{name: "REDIS_POOL_SIZE", why: "weir shares few connections among all calls"},
	{name: "REDIS_POOL_ON_EMPTY_BEHAVIOR", why: "weir shares few connections among all calls", same: []string{"WAIT"}},
	{name: "REDIS_PIPELINE_WINDOW", why: "weir sends together what waits at the same time"},
	{name: "REDIS_PIPELINE_LIMIT", why: "weir sends together what waits at the same time"},
	{name: "REDIS_POOL_ON_EMPTY_WAIT_DURATION", why: "weir shares few connections among all calls"},
	{name: "REDIS_CLUSTER_PIPELINE_PARALLELISM", why: "weir asks the nodes of a cluster at the same time"},
	{name: "REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR", why: "weir keeps connections to a server that becomes read-only, and decides by on_outage meanwhile: name Sentinels or a cluster"},
	{name: "REDIS_STARTUP_*", why: "weir starts without Redis, and connects when it answers"},
	{name: "REDIS_USE_EXPLICIT_PIPELINE", why: "weir sends together what waits at the same time"},
	{name: "USE_STATSD", why: "metrics are at /metrics of the admin address"},
	{name: "USE_DOG_STATSD", why: "metrics are at /metrics of the admin address"},
	{name: "USE_DOG_STATSD_MOGRIFIERS", why: "metrics are at /metrics of the admin address"},
	{name: "DOG_STATSD_*", why: "metrics are at /metrics of the admin address"},
	{name: "STATSD_*", why: "metrics are at /metrics of the admin address"},
	{name: "STATS_FLUSH_INTERVAL", why: "metrics are at /metrics of the admin address"},
	{name: "DISABLE_STATS", why: "weir counts what its metrics and /stats show in any case"},
	{name: "EXTRA_TAGS", why: "Prometheus adds labels when it reads the metrics"},
	{name: "PROMETHEUS_MAPPER_YAML", why: "the metrics have the names of the default mapper"},
	{name: "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", why: "ratelimit_service_response_time_seconds is in seconds"},
	{name: "TRACING_*", why: "weir sends traces with --otlp-endpoint"},
}

// others returns a warning for each variable of e that weir does not follow. xds reports that
// an xDS server sends the rules. The error names the variable that weir refuses.
func (e envoyEnvironment) others(xds bool) (warnings []string, err error) {
	for _, name := range e.names {
		o := otherOf(name)
		value := ""
		if o != nil && !(xds && o.xds) {
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
