package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Convert the rules of another program into a rules file",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImportKoala(), newImportEnvoy())
	return cmd
}

func newImportKoala() *cobra.Command {
	return &cobra.Command{
		Use:   "koala FILE",
		Short: "Convert koala's rules into a rules file",
		Long: `Convert koala's rule file into a rules file that decides the same, and print it.
FILE is koala's rule file, or its main file, which names the rule file; - is the
standard input. Counters survive the change from one file to the other. Warnings
show where koala decided differently.

Dicts stay in their files. Paths below the current directory are written relative
to it, so put the rules file there.`,
		Example: "  weir import koala conf/koala_rule.conf > rules.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := readSource(cmd, args[0])
			if err != nil {
				return err
			}
			site, err := koalafile.Read(in.name, in.text, in.stdin)
			var rules []byte
			if err == nil {
				rules, err = site.Native(fromHere)
			}
			printWarnings(cmd.ErrOrStderr(), site.Warnings)
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), err)
				return fmt.Errorf("%s has faults; nothing was written", in.name)
			}
			_, err = cmd.OutOrStdout().Write(rules)
			return err
		},
	}
}

// fromHere returns path relative to the current directory if it is below it.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(relative) {
		return path
	}
	return filepath.ToSlash(relative)
}
