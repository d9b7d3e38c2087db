package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server"
)

func newInspect() *cobra.Command {
	store := ""
	cmd := &cobra.Command{
		Use:   "inspect KEY",
		Short: "Tell what a store keeps under a key",
		Long: `Tell in words what a store that instances share keeps under a key, by the key's
name in Redis. Nothing is changed.`,
		Example: `  weir inspect --store redis://localhost 'weir:{ann}:posts:6dd2c1b94f10a3e7'`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, keys []string) error {
			return server.Inspect(cmd.Context(), store, keys[0], cmd.OutOrStdout())
		},
	}
	storeFlag(cmd, &store)
	return cmd
}

// storeFlag adds --store, whose default is in the environment: a URL may hold a
// password, and what is running with which arguments is no secret.
func storeFlag(cmd *cobra.Command, url *string) {
	cmd.Flags().StringVar(url, "store", os.Getenv("WEIR_STORE"), "`URL` of the store that instances share, redis://… (default $WEIR_STORE)")
	cmd.Flags().Lookup("store").DefValue = "" // not for help to show
}
