package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/cmd/weir/internal/stores"
)

func newDoctor() *cobra.Command {
	store := ""
	var strict, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a server is suitable, before the service relies on it",
		Long: `Check whether the servers of a shared store are suitable: their version, the user's
permissions, what can lose counts, the number of connections, the round trip, the
clock and its rate; on Redis also the engine and whether scripts run one at a time, on
PostgreSQL also proxies and dead rows. Each check is one line: ok, unknown (the server
does not show it to this user), warn or refuse, what was seen, what it means for
limits, and how to fix it. weir serve makes the same checks when it starts, but for
the rate of the clock, which takes up to four seconds.

The checks count nothing. On Redis they write scratch keys under the store's prefix
and delete them.

Exit status: 0 the server is suitable, 1 a check refuses it; with --strict, 1 also for
a warning.`,
		Example: `  weir doctor --store redis://localhost
  weir doctor --store redis+cluster://host1,host2 --json
  weir doctor --store postgres://weir@localhost/app`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Sprintf("doctor has no argument: for a store write weir doctor --store %s", withoutPassword(args[0]))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return server.Doctor(cmd.Context(), store, strict, asJSON, cmd.OutOrStdout())
		},
	}
	storeFlag(cmd, &store)
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 for warnings too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newInspect() *cobra.Command {
	store, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "inspect KEY",
		Short: "Show what a shared store holds under a key",
		Long: `Show what a shared store holds under a key. KEY is the name of the key in Redis, or
in PostgreSQL the name of the row, such as posts:ann, or the digits of its key.
Nothing is changed.`,
		Example: `  weir inspect --store redis://localhost 'weir:{ann}:posts:6dd2c1b94f10a3e7'
  weir inspect --store postgres://weir@localhost/app posts:ann`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, keys []string) error {
			return server.Inspect(cmd.Context(), store, keys[0], asJSON, cmd.OutOrStdout())
		},
	}
	storeFlag(cmd, &store)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: the lines of the page, with their names")
	return cmd
}

// storeFlag adds --store. Its default comes from the environment, because a URL
// may hold a password and other users of a machine can read command lines.
func storeFlag(cmd *cobra.Command, url *string) {
	cmd.Flags().StringVar(url, "store", os.Getenv("WEIR_STORE"), "`URL` of the store that the instances share, "+stores.Examples()+" (default $WEIR_STORE)")
	cmd.Flags().Lookup("store").DefValue = "" // help must not show it
}
