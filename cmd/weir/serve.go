package main

import (
	"context"
	"fmt"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/server"
)

func newServe() *cobra.Command {
	cfg := config.Default()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve rules over HTTP",
		Long: `Serve the rules of a file over HTTP; without a file, a demo rule.

The rules are read again when the file or a list that it reads changes, on
SIGHUP, and on POST /-/reload to the admin address. A file that is wrong changes
nothing, and counters survive. SIGTERM and SIGINT let requests in flight finish.

Instances that share a store, in Redis or Valkey, count together; without one
they count in memory. Where its URL holds a password, put it into the variable
WEIR_STORE: arguments are for all users of a machine to see.`,
		Example: `  weir serve
  weir serve --rules rules.yaml
  weir serve --rules rules.yaml --listen :8080 --log-format json
  weir serve --rules rules.yaml --store redis://localhost:6379 --nodes 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends at once
			return server.Run(ctx, cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Rules, "rules", cfg.Rules, "rules `file`; without one a demo runs")
	f.StringVar(&cfg.Listen, "listen", cfg.Listen, "`address` of the API")
	f.StringVar(&cfg.Admin, "admin", cfg.Admin, "`address` of health, metrics, reload and profiles; keep it private")
	f.BoolVar(&cfg.Watch, "watch", cfg.Watch, "read the rules again when their files change")
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
	return cmd
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
