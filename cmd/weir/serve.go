package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/headers"
)

func newServe() *cobra.Command {
	cfg := config.Default()
	koalaConfig, envoyEnv := "", false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve rules over HTTP",
		Long: `Serve the rules of a file over HTTP. Without a file, serve a demo rule. Of a
directory, serve each file NAME.yaml as the namespace NAME, with its own rules
and counters: calls name it as /ns/NAME/v1/… or in the header Weir-Namespace, or their
token does; otherwise they are for the namespace default. A fault in one file does
not affect the others.

The rules are read again when the file or one of its list files changes, on
SIGHUP, and on POST /-/reload to the admin address. Counters survive a reload. If
the file has faults, the old rules stay in force. With - for FILE they are read once,
from the standard input. On SIGTERM and SIGINT the
service finishes the requests in flight, then ends.

Programs on the same machine need no token. Before it listens on any other
address, weir serve needs authentication: --tokens FILE, the variable WEIR_TOKEN, or
https:// addresses with --tls-client-ca FILE. Without it weir ends with status
2; --insecure serves without authentication.

Counts are in memory. With --data DIR they are also written to a directory, 200 ms
later, and the next process continues with them: a deploy loses nothing, a kill at
most what was counted in those 200 ms. With --store, all instances that name the same Redis or
Valkey count together. weir serve makes the checks of weir doctor: it does not
start if one fails, and logs warnings about what can lose counts. If the URL has a
password, set WEIR_STORE instead of the flag: other users of the machine can read
command lines.

To replace koala: --koala reads koala's rule file and answers koala's calls at
--koala-listen. --koala-config reads the address, the rule file and Redis from
koala's main file; flags take precedence.

Each flag can be set by a variable, too: WEIR_ and the name of the flag in upper case,
with _ for -, such as WEIR_RULES or WEIR_LOG_FORMAT. Flags take precedence, and an
empty variable sets nothing.

For Envoy: --grpc-listen answers Envoy's rate limit protocol by the rules. To
replace envoyproxy/ratelimit: --envoy-config reads the *.yaml files of a directory as
that service does, and its environment variables set the rest; flags take
precedence. The addresses are then 127.0.0.1:8080, 127.0.0.1:8081 for gRPC and
127.0.0.1:6070 for admin. --envoy-env takes the place of the files, too, from that
environment: a directory, or an xDS server such as Envoy Gateway's. Under the name
ratelimit, weir does so on all interfaces and without authentication, as that service does,
but for the admin address.`,
		Example: `  weir serve
  weir serve --rules rules.yaml
  weir serve --rules rules/                # a file for each namespace
  weir serve --rules rules.yaml --listen unix:/run/weir/weir.sock --log-format json
  weir serve --rules rules.yaml --listen https://:8443 --tls-cert cert.pem --tls-key key.pem --tokens tokens
  weir serve --rules rules.yaml --data /var/lib/weir
  weir serve --rules rules.yaml --store redis://localhost:6379 --nodes 3
  weir serve --koala koala_rule.conf --koala-listen :9981 --insecure=koala
  weir serve --koala-config koala.conf
  weir serve --rules rules.yaml --grpc-listen :8082 --insecure=grpc
  weir serve --envoy-config config --store redis://localhost:6379`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Sprintf("serve has no argument: for a rules file write weir serve --rules %s", withoutPassword(args[0]))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal kills the process
			if err := flagsFromEnvironment(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("rules") && cfg.Rules == "" {
				return &usageError{"--rules is empty: want a file; without --rules, a demo rule is served"}
			}
			if cfg.Rules == "-" {
				in, err := readSource(cmd, cfg.Rules)
				if err != nil {
					return err
				}
				cfg.Stdin = in.text
			}
			if koalaConfig != "" {
				if err := readKoalaConfig(cmd, &cfg, koalaConfig); err != nil {
					return err
				}
			}
			if envoyEnv || cfg.Envoy.Replaces() {
				if err := readEnvironment().read(cmd, &cfg, envoyEnv); err != nil {
					return err
				}
			}
			cfg.Access.Token = os.Getenv("WEIR_TOKEN")
			cfg.LogKeysSecret = os.Getenv("WEIR_LOG_KEYS_SECRET")
			if err := cmp.Or(cfg.Exposed(), cfg.Validate()); err != nil {
				return &usageError{err.Error()}
			}
			return server.Run(ctx, cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&koalaConfig, "koala-config", "", "koala's main `file`; flags take precedence")
	cmd.Flags().BoolVar(&envoyEnv, "envoy-env", false, "replace envoyproxy/ratelimit: its rule files, or the xDS server that sends them, are where its environment says")
	serveFlags(cmd, &cfg)
	return cmd
}

// serveFlags adds the flags that set cfg.
func serveFlags(cmd *cobra.Command, cfg *config.Config) {
	f := cmd.Flags()
	f.StringVar(&cfg.Rules, "rules", cfg.Rules, "rules `file`, - for the standard input, or a directory with a file NAME.yaml for each namespace; without one, a demo rule")
	f.StringVar(&cfg.Listen, "listen", cfg.Listen, "`address` of the API: host:port, https://host:port, h2c://host:port or unix:PATH")
	f.StringVar(&cfg.RESPListen, "resp-listen", cfg.RESPListen, "`address` of calls in the protocol of Redis: host:port, rediss://host:port or unix:PATH; without one, none are served")
	f.StringVar(&cfg.GRPCListen, "grpc-listen", cfg.GRPCListen, "`address` of gRPC calls, written as for --listen; without one, none are served")
	f.DurationVar(&cfg.GRPCAge, "grpc-max-connection-age", cfg.GRPCAge, "how long a gRPC connection stays open before its client is asked to open another one, so that new instances get calls; 0: no limit")
	f.DurationVar(&cfg.GRPCAgeGrace, "grpc-max-connection-age-grace", cfg.GRPCAgeGrace, "how long calls and streams may go on after --grpc-max-connection-age; 0: no limit")
	f.StringVar(&cfg.Envoy.Dir, "envoy-config", cfg.Envoy.Dir, "`directory` with the rule files of envoyproxy/ratelimit, instead of --rules")
	f.BoolVar(&cfg.Envoy.Headers, "envoy-headers", cfg.Envoy.Headers, "tell Envoy to add the fields of --headers to its answers")
	f.StringVar(&cfg.Admin, "admin", cfg.Admin, "`address` of health, metrics, reload and profiles, written as for --listen")
	f.StringVar(&cfg.Page, "page", cfg.Page, "whether --admin serves the page: on or off")
	f.Var(&cfg.Record, "record", "memory for the requests of the last hour, such as 64MiB, so that changed rules can be tried on them; if they do not fit, those of a share of the keys are kept; 0: none")
	f.BoolVar(&cfg.PageWrite, "page-write", cfg.PageWrite, "let callers with scope admin save rules on the page")
	f.StringVar(&cfg.MetricsListen, "metrics-listen", cfg.MetricsListen, "`address` that has only metrics and health, written as for --listen; without one, only --admin has them")
	f.StringVar(&cfg.Headers, "headers", cfg.Headers, "how /v1/gate states limits in headers: "+strings.Join(headers.Dialects(), ", "))
	f.Float64Var(&cfg.HeadersJitter, "headers-jitter", cfg.HeadersJitter, "`part` by which waits in headers become longer at random, such as 0.1, so that clients do not all come back at once")
	accessFlags(cmd, &cfg.Access)
	resourceFlags(cmd, &cfg.Resources)
	f.StringVar(&cfg.Koala, "koala", cfg.Koala, "koala's rule `file`, instead of --rules")
	f.StringVar(&cfg.KoalaListen, "koala-listen", cfg.KoalaListen, "`address` for koala's calls (default 127.0.0.1:9981 with --koala)")
	f.BoolVar(&cfg.Watch, "watch", cfg.Watch, "read the rules again when their files change")
	f.DurationVar(&cfg.WatchEvery, "watch-every", cfg.WatchEvery, "also check the files at this interval, for changes made by other machines")
	storeFlag(cmd, &cfg.Store)
	f.StringVar(&cfg.Data, "data", cfg.Data, "`directory` that counters in memory are written to, and loaded from at the start")
	f.StringVar(&cfg.Sync, "sync", cfg.Sync, "`when` what changed is synced to the disk of --data: always, interval or os (default interval)")
	f.DurationVar(&cfg.SyncInterval, "sync-interval", cfg.SyncInterval, "how often what changed is written to --data (default 200ms)")
	f.BoolVar(&cfg.ServeWhileLoading, "serve-while-loading", cfg.ServeWhileLoading, "while counters are loaded from --data, let rules follow their on_outage instead of answering 503")
	f.DurationVar(&cfg.StoreTimeout, "store-timeout", cfg.StoreTimeout, "longest time that a decision waits for the store (default 50ms, PostgreSQL 100ms)")
	f.Var(nodesFlag{&cfg.Nodes}, "nodes", "`number` of instances that share the store, or auto to count them; each leases at most its share of what is left of a quota, and admits its share during an outage (not set: all)")
	f.BoolVar(&cfg.ReadyNeedsStore, "ready-needs-store", cfg.ReadyNeedsStore, "report not ready while the store is unavailable")
	f.IntVar(&cfg.TopKeys, "top-keys", cfg.TopKeys, "`number` of keys that are kept for each rule for weir top; 0 keeps none, and no denials")
	f.IntVar(&cfg.Events, "events", cfg.Events, "`number` of recent events that are kept for weir events; 0 keeps none")
	f.StringVar(&cfg.Webhooks, "webhooks", cfg.Webhooks, "`file` with webhooks that events are sent to")
	f.Float64Var(&cfg.NearLimit, "near-limit", cfg.NearLimit, "`share` of a quota from which on a take counts in the metric weir_rule_near_limit_total, and is an event")
	f.IntVar(&cfg.MetricNamespaces, "metric-namespaces", cfg.MetricNamespaces, "`number` of namespaces with their own label in metrics; others are counted together")
	f.DurationVar(&cfg.DrainDelay, "drain-delay", cfg.DrainDelay, "how long to keep serving, not ready, after a signal to stop")
	f.DurationVar(&cfg.DrainTimeout, "drain-timeout", cfg.DrainTimeout, "how long requests in flight may take after --drain-delay")
	f.StringVar(&cfg.LogFormat, "log-format", cfg.LogFormat, "log `format`: text or json")
	f.StringVar(&cfg.LogLevel, "log-level", cfg.LogLevel, "lowest `level` to log: debug, info, warn or error")
	complete(cmd, "headers", headers.Dialects())
	complete(cmd, "page", config.Pages())
	complete(cmd, "sync", config.Syncs())
	f.StringVar(&cfg.LogKeys, "log-keys", cfg.LogKeys, "how keys are shown: plain, hashed or none (not set: plain in top keys and in denials, which --data and --store keep for a day; none in logs and traces)")
	f.StringVar(&cfg.OTLPEndpoint, "otlp-endpoint", cfg.OTLPEndpoint, "`URL` of an OpenTelemetry collector for traces and metrics, such as http://localhost:4318 (default: OTEL_EXPORTER_OTLP_ENDPOINT)")
	complete(cmd, "log-format", config.LogFormats())
	complete(cmd, "log-keys", top.KeyForms())
	complete(cmd, "log-level", config.LogLevels())
}

// accessFlags adds the flags about authentication.
func accessFlags(cmd *cobra.Command, a *config.Access) {
	f := cmd.Flags()
	f.StringVar(&a.Tokens, "tokens", a.Tokens, "tokens `file`; with it, callers need a token (see weir token)")
	f.StringVar(&a.TLSCert, "tls-cert", a.TLSCert, "`file` with the certificate chain of https:// addresses")
	f.StringVar(&a.TLSKey, "tls-key", a.TLSKey, "`file` with the key of the certificate")
	f.StringVar(&a.TLSClientCA, "tls-client-ca", a.TLSClientCA, "`file` with authorities; clients of https:// addresses need a certificate of theirs")
	f.StringSliceVar(&a.Insecure, "insecure", a.Insecure, "`listeners` that strangers may reach without authentication: http, admin, grpc, resp, koala, metrics or all")
	f.Lookup("insecure").NoOptDefVal = "all"
	f.StringSliceVar(&a.Hosts, "hosts", a.Hosts, "further `names` of the service; on loopback without authentication, requests for other names are refused")
	f.StringSliceVar(&a.Proxies, "trusted-proxies", a.Proxies, "`networks` of proxies; the gate's ip is the last address in its header that is not theirs")
	complete(cmd, "insecure", config.InsecureNames())
}

// resourceFlags adds the flags of resource limits.
func resourceFlags(cmd *cobra.Command, b *config.ResourceLimits) {
	f := cmd.Flags()
	f.IntVar(&b.Connections, "max-connections", b.Connections, "most connections of the API, of gRPC, of Redis clients, and of koala's calls, for each of them; 0: no limit")
	f.Int64Var(&b.Requests, "max-requests", b.Requests, "most requests that are decided at the same time; 0: no limit")
	f.Var(&b.RequestMemory, "max-request-memory", "most memory of large requests and their answers together, half of it for one caller; 0: no limit")
	f.Var(&b.Answer, "max-answer", "largest answer; 0: no limit")
	f.Var(&b.Memory, "memory", "most memory of all counters in memory; auto: half of what there is; 0: no limit")
}

// readKoalaConfig sets the fields of cfg that koala's main file has and no flag sets.
func readKoalaConfig(cmd *cobra.Command, cfg *config.Config, path string) error {
	main, warnings, err := koalafile.LoadMain(path)
	if err != nil {
		return err
	}
	cfg.Warnings = append(cfg.Warnings, koalafile.Brief(path, warnings)...)
	given := cmd.Flags().Changed
	if !given("koala") && !given("rules") {
		if err := main.CheckRuleFile(path); err != nil {
			return err
		}
		cfg.Koala = main.RuleFile
	}
	if !given("store-timeout") {
		cfg.KoalaTimeout = main.Timeout
	}
	if !given("koala-listen") {
		cfg.KoalaListen = main.Listen
	}
	if !given("watch-every") {
		cfg.WatchEvery = main.Reload
	}
	if cfg.Store == "" && !given("store") {
		cfg.Store = main.StoreURL()
	}
	return nil
}

// nodesFlag is the value of --nodes.
type nodesFlag struct{ nodes *int }

// String returns the value of the flag. It is empty if the flag is not set.
func (f nodesFlag) String() string {
	switch {
	case f.nodes == nil || *f.nodes == 0:
		return ""
	case *f.nodes == config.AutoNodes:
		return "auto"
	}
	return strconv.Itoa(*f.nodes)
}

// Set parses a value.
func (f nodesFlag) Set(text string) error {
	if text == "auto" {
		*f.nodes = config.AutoNodes
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("want the number of instances, at least 1, or auto")
	}
	*f.nodes = n
	return nil
}

// Type returns the type of a value, for the help.
func (nodesFlag) Type() string { return "number" }
