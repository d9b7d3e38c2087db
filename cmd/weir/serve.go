package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/koala"
	"github.com/weirhq/weir/internal/server"
)

func newServe() *cobra.Command {
	cfg := config.Default()
	koalaConfig := ""
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve rules over HTTP",
		Long: `Serve the rules of a file over HTTP; without a file, a demo rule.

The rules are read again when the file or a list that it reads changes, on
SIGHUP, and on POST /-/reload to the admin address. A file that is wrong changes
nothing, and counters survive. SIGTERM and SIGINT let requests in flight finish.

Instances that share a store, in Redis or Valkey, count together; without one
they count in memory. Where its URL holds a password, put it into the variable
WEIR_STORE: arguments are for all users of a machine to see.

In place of koala: --koala takes a rule file of koala's as it is, and answers
koala's calls at --koala-listen; --koala-config takes what koala's own main file
says of the address, the rule file and Redis. Flags win over that file. Rules can
be rewritten with POST /rule/rewrite by who shows the token in
WEIR_KOALA_TOKEN.`,
		Example: `  weir serve
  weir serve --rules rules.yaml
  weir serve --rules rules.yaml --listen :8080 --log-format json
  weir serve --rules rules.yaml --store redis://localhost:6379 --nodes 3
  weir serve --koala koala_rule.conf --koala-listen :9981
  weir serve --koala-config koala.conf`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends at once
			if koalaConfig != "" {
				if err := readKoalaConfig(cmd, &cfg, koalaConfig); err != nil {
					return err
				}
			}
			if cfg.KoalaToken == "" && cfg.Koala != "" {
				cfg.KoalaToken = os.Getenv("WEIR_KOALA_TOKEN")
			}
			return server.Run(ctx, cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&koalaConfig, "koala-config", "", "koala's main `file`, for what no flag says")
	serveFlags(cmd, &cfg)
	return cmd
}

// serveFlags are the flags that fill cfg.
func serveFlags(cmd *cobra.Command, cfg *config.Config) {
	f := cmd.Flags()
	f.StringVar(&cfg.Rules, "rules", cfg.Rules, "rules `file`; without one a demo runs")
	f.StringVar(&cfg.Listen, "listen", cfg.Listen, "`address` of the API")
	f.StringVar(&cfg.Admin, "admin", cfg.Admin, "`address` of health, metrics, reload and profiles; keep it private")
	f.StringVar(&cfg.Koala, "koala", cfg.Koala, "koala's rule `file`, in place of rules")
	f.StringVar(&cfg.KoalaListen, "koala-listen", cfg.KoalaListen, "`address` of koala's calls (default 127.0.0.1:9981 with koala)")
	f.StringVar(&cfg.KoalaToken, "koala-token", cfg.KoalaToken, "`token` for rewriting koala's rules; better in WEIR_KOALA_TOKEN")
	f.BoolVar(&cfg.Watch, "watch", cfg.Watch, "read the rules again when their files change")
	f.DurationVar(&cfg.WatchEvery, "watch-every", cfg.WatchEvery, "look at the files this often, too, for those that other machines change")
	storeFlag(cmd, &cfg.Store)
	f.DurationVar(&cfg.StoreTimeout, "store-timeout", cfg.StoreTimeout, "longest wait for the store (default 10ms)")
	f.IntVar(&cfg.Nodes, "nodes", cfg.Nodes, "how many instances share the store, and each quota while it is out of reach")
	f.BoolVar(&cfg.ReadyNeedsStore, "ready-needs-store", cfg.ReadyNeedsStore, "not ready while the store is out of reach")
	f.DurationVar(&cfg.DrainDelay, "drain-delay", cfg.DrainDelay, "how long to go on serving, not ready, when told to stop")
	f.DurationVar(&cfg.DrainTimeout, "drain-timeout", cfg.DrainTimeout, "how long requests in flight may take after that")
	f.StringVar(&cfg.LogFormat, "log-format", cfg.LogFormat, "text or json")
	f.StringVar(&cfg.LogLevel, "log-level", cfg.LogLevel, "debug, info, warn or error")
	complete(cmd, "log-format", config.LogFormats())
	complete(cmd, "log-level", config.LogLevels())
}

// readKoalaConfig fills cfg with what koala's main file says and no flag does.
func readKoalaConfig(cmd *cobra.Command, cfg *config.Config, path string) error {
	main, warnings, err := koala.LoadMain(path)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		line, _, _ := strings.Cut(w.Error(), "\n")
		cfg.Warnings = append(cfg.Warnings, line)
	}
	given := cmd.Flags().Changed
	if !given("koala") && !given("rules") {
		if _, err := os.Stat(main.RuleFile); err != nil {
			return noRuleFile(path, err)
		}
		cfg.Koala = main.RuleFile
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

// complete offers values for a flag in the shell.
func complete(cmd *cobra.Command, flag string, values []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag: a slip of this package
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}

func version() string {
	return fmt.Sprintf("weir %s, %s, %s/%s", server.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
