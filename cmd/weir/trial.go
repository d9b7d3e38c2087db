package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/trial"
)

// newTrialWorker returns the command that weir serve runs for a trial of changed rules on the page.
func newTrialWorker() *cobra.Command {
	return &cobra.Command{
		Use:    trial.Command,
		Short:  "Run a trial of changed rules for the page of weir serve",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return trial.Work(cmd.Context(), os.Stdin, cmd.OutOrStdout())
		},
	}
}
