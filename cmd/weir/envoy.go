package main

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/envoyfile"
)

// envoySetting is a variable of envoyproxy/ratelimit's environment. read sets what
// it means in cfg.
type envoySetting struct {
	name string
	read func(cfg *config.Config, value string) error
}

// envoySettings are the variables that do not depend on others.
var envoySettings = []envoySetting{
	{"SHADOW_MODE", truth(func(c *config.Config) *bool { return &c.Envoy.Shadow })},
	{"QUOTA_MODE", truth(func(c *config.Config) *bool { return &c.Envoy.Quota })},
	{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", truth(func(c *config.Config) *bool { return &c.Envoy.Together })},
	{"MERGE_DOMAIN_CONFIG", truth(func(c *config.Config) *bool { return &c.Envoy.MergeDomains })},
	{"RESPONSE_DYNAMIC_METADATA", truth(func(c *config.Config) *bool { return &c.Envoy.Metadata })},
	{"USE_PROMETHEUS", truth(func(c *config.Config) *bool { return &c.Envoy.Metrics })},
	{"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", truth(func(c *config.Config) *bool { return &c.ReadyNeedsStore })},
	{"LIMIT_LIMIT_HEADER", wordIn(func(c *config.Config) *string { return &c.Envoy.Limit })},
	{"LIMIT_REMAINING_HEADER", wordIn(func(c *config.Config) *string { return &c.Envoy.Remaining })},
	{"LIMIT_RESET_HEADER", wordIn(func(c *config.Config) *string { return &c.Envoy.Reset })},
	{"NEAR_LIMIT_RATIO", func(c *config.Config, value string) (err error) {
		c.Envoy.NearLimit, err = strconv.ParseFloat(value, 64)
		return err
	}},
}

// envoyIgnored are variables that weir has no use for, and why.
var envoyIgnored = map[string]string{
	"LOCAL_CACHE_SIZE_IN_BYTES":     "weir needs no cache of exceeded limits",
	"EXPIRATION_JITTER_MAX_SECONDS": "keys expire with their windows",
	"REDIS_PERSECOND":               "one Redis keeps all limits",
	"REDIS_POOL_SIZE":               "weir shares few connections among all calls",
	"REDIS_PIPELINE_WINDOW":         "weir sends together what waits at the same time",
	"REDIS_PIPELINE_LIMIT":          "weir sends together what waits at the same time",
	"USE_STATSD":                    "metrics are at /metrics of the admin address",
}

func truth(field func(*config.Config) *bool) func(*config.Config, string) error {
	return func(c *config.Config, value string) error {
		is, err := strconv.ParseBool(value)
		*field(c) = is
		return err
	}
}

func wordIn(field func(*config.Config) *string) func(*config.Config, string) error {
	return func(c *config.Config, value string) error {
		*field(c) = value
		return nil
	}
}

// readEnvoyEnvironment sets the fields of cfg that the environment of
// envoyproxy/ratelimit has and no flag sets. paths reports whether the rule files are
// where that environment says.
func readEnvoyEnvironment(cmd *cobra.Command, cfg *config.Config, paths bool) error {
	given := cmd.Flags().Changed
	if paths && !given("envoy-config") {
		cfg.Envoy.Dir = filepath.Join(cmp.Or(os.Getenv("RUNTIME_ROOT"), "/srv/runtime_data/current"),
			os.Getenv("RUNTIME_SUBDIRECTORY"), cmp.Or(os.Getenv("RUNTIME_APPDIRECTORY"), "config"))
	}
	if kind := os.Getenv("CONFIG_TYPE"); kind != "" && kind != "FILE" {
		return &usageError{fmt.Sprintf("CONFIG_TYPE=%s: weir reads rule files only; want FILE", kind)}
	}
	if kind := os.Getenv("BACKEND_TYPE"); kind != "" && kind != "redis" {
		return &usageError{fmt.Sprintf("BACKEND_TYPE=%s: want redis, or --store", kind)}
	}
	for _, s := range envoySettings {
		value, ok := os.LookupEnv(s.name)
		if !ok || value == "" {
			continue
		}
		if err := s.read(cfg, value); err != nil {
			return &usageError{fmt.Sprintf("%s=%s: %v", s.name, value, unwrapped(err))}
		}
	}
	if value := os.Getenv("LIMIT_RESPONSE_HEADERS_ENABLED"); value != "" && !given("envoy-headers") {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return &usageError{fmt.Sprintf("LIMIT_RESPONSE_HEADERS_ENABLED=%s: %v", value, unwrapped(err))}
		}
		cfg.Envoy.Headers = on
	}
	for _, name := range slices.Sorted(maps.Keys(envoyIgnored)) {
		if value := os.Getenv(name); value != "" && value != "0" && value != "false" {
			cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s has no effect: %s", name, envoyIgnored[name]))
		}
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
			*a.to = net.JoinHostPort(cmp.Or(os.Getenv(a.host), "127.0.0.1"), cmp.Or(os.Getenv(a.port), a.usual))
		}
	}
	if at := os.Getenv("REDIS_URL"); at != "" && cfg.Store == "" && !given("store") {
		var err error
		if cfg.Store, err = envoyStore(at); err != nil {
			return err
		}
	}
	if level := os.Getenv("LOG_LEVEL"); level != "" && !given("log-level") {
		cfg.LogLevel = strings.Replace(strings.ToLower(level), "warning", "warn", 1)
	}
	if format := os.Getenv("LOG_FORMAT"); format != "" && !given("log-format") {
		cfg.LogFormat = strings.ToLower(format)
	}
	return nil
}

// unwrapped returns what is below an error of package strconv, which repeats the
// text.
func unwrapped(err error) error {
	if number, ok := err.(*strconv.NumError); ok { //nolint:errorlint // strconv returns it as it is
		return number.Err
	}
	return err
}

// envoyStore returns the URL of the store that the REDIS_ variables describe.
func envoyStore(at string) (string, error) {
	u := url.URL{Scheme: "redis", Host: at}
	secure := os.Getenv("REDIS_TLS") == "true" || os.Getenv("REDIS_SOCKET_TYPE") == "tls"
	if secure {
		u.Scheme = "rediss"
	}
	switch kind := strings.ToLower(cmp.Or(os.Getenv("REDIS_TYPE"), "single")); kind {
	case "single":
		if path, socket := strings.CutPrefix(at, "unix://"); socket || strings.HasPrefix(at, "/") {
			u = url.URL{Scheme: "unix", Path: path}
		}
	case "cluster":
		u.Scheme += "+cluster"
	case "sentinel":
		name, hosts, ok := strings.Cut(at, ",")
		if !ok {
			return "", &usageError{fmt.Sprintf("REDIS_URL=%s: with REDIS_TYPE=sentinel want NAME,HOST:PORT,…", at)}
		}
		u.Scheme, u.Host, u.Path = u.Scheme+"+sentinel", hosts, "/"+name
	default:
		return "", &usageError{fmt.Sprintf("REDIS_TYPE=%s: want single, sentinel or cluster", kind)}
	}
	if auth := os.Getenv("REDIS_AUTH"); auth != "" {
		user, password, ok := strings.Cut(auth, ":")
		if !ok {
			user, password = "", auth
		}
		u.User = url.UserPassword(user, password)
	}
	q := url.Values{}
	for name, option := range map[string]string{
		"CACHE_KEY_PREFIX": "prefix", "REDIS_TIMEOUT": "timeout",
	} {
		if value := os.Getenv(name); value != "" {
			q.Set(option, value)
		}
	}
	if secure {
		for name, option := range map[string]string{
			"REDIS_TLS_CACERT": "ca", "REDIS_TLS_CLIENT_CERT": "cert", "REDIS_TLS_CLIENT_KEY": "key",
		} {
			if value := os.Getenv(name); value != "" {
				q.Set(option, value)
			}
		}
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

func newImportEnvoy() *cobra.Command {
	merge := false
	cmd := &cobra.Command{
		Use:   "envoy DIR",
		Short: "Convert the rules of envoyproxy/ratelimit into a rules file",
		Long: `Convert the *.yaml files in DIR, rules of envoyproxy/ratelimit, into a rules file for
weir serve --grpc-listen, and print it. Warnings list each limit that means something
else there: weeks, months and years are those of the calendar, calls that are denied
cost nothing, and of several patterns the most specific one wins.

weir serve --envoy-config DIR decides as that service does, without a conversion.`,
		Example: "  weir import envoy config > rules.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := envoyfile.Load(args[0], envoyfile.Options{MergeDomains: merge})
			if err != nil {
				return err
			}
			text, differs, err := c.Native(filepath.Base(filepath.Clean(args[0])))
			if err != nil {
				return err
			}
			printWarnings(cmd.ErrOrStderr(), append(c.Warnings, differs...))
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&merge, "merge", false, "add up files with the same domain (MERGE_DOMAIN_CONFIG)")
	return cmd
}
