package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/cmd/weir/internal/stores"
)

func newInspect() *cobra.Command {
	store := ""
	cmd := &cobra.Command{
		Use:   "inspect KEY",
		Short: "Show what a shared store holds under a key",
		Long: `Show in words what a shared store holds under a key. KEY is the name of the key
in Redis. Nothing is changed.`,
		Example: `  weir inspect --store redis://localhost 'weir:{ann}:posts:6dd2c1b94f10a3e7'`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, keys []string) error {
			return server.Inspect(cmd.Context(), store, keys[0], cmd.OutOrStdout())
		},
	}
	storeFlag(cmd, &store)
	return cmd
}

// storeFlag adds --store. Its default comes from the environment, because a URL
// may hold a password and other users of a machine can read command lines.
func storeFlag(cmd *cobra.Command, url *string) {
	cmd.Flags().StringVar(url, "store", os.Getenv("WEIR_STORE"), "`URL` of the store that the instances share, "+stores.Examples()+" (default $WEIR_STORE)")
	cmd.Flags().Lookup("store").DefValue = "" // help must not show it
}
