package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
)

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
