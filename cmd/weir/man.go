//go:build man

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/weirhq/weir/cmd/weir/internal/server"
)

// addMan adds the command that writes the manual pages of a release. It is not in the program
// that users get, because its generator would be, too.
func addMan(root *cobra.Command) {
	root.DisableAutoGenTag = true
	root.AddCommand(&cobra.Command{
		Use: "man DIR", Short: "Write manual pages to a directory", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: fmt.Sprint("weir ", server.Version()), Manual: "weir"}, args[0])
		},
	})
}
