package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Convert the rules of another program into a rules file",
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
				return fmt.Errorf("%s has errors; nothing was written", in.name)
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
