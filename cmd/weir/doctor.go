package main

import (
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/server"
)

func newDoctor() *cobra.Command {
	store := ""
	var strict, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a Redis server fits, before the service counts on it",
		Long: `Check whether the servers of a shared store fit: the engine and its version,
whether its programs exclude each other, the user's rights, what can lose counts,
room for connections, the round trip, the clock. Each check is one line: ok,
unknown (the server does not show it to this user), warn or refuse, what was
seen, what it means for limits, and how to fix it. weir serve makes the same
checks when it starts.

The checks write scratch keys under the store's prefix and delete them. They
count nothing.

Exit status: 0 the server fits, 1 a check refuses it; with --strict, 1 also for
a warning.`,
		Example: `  weir doctor --store redis://localhost
  weir doctor --store redis+cluster://host1,host2 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return server.Doctor(cmd.Context(), store, strict, asJSON, cmd.OutOrStdout())
		},
	}
	storeFlag(cmd, &store)
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 for warnings too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
