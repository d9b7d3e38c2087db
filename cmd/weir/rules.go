package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/rulefile"
)

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE…",
		Short: "Check rules files and print every fault",
		Long: `Check rules files, and the lists that they read. Every fault is printed as
file:line:column, with its line and what was expected there.`,
		Example: "  weir check rules.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			bad := 0
			for _, name := range files {
				file, err := rulefile.Load(name)
				if err != nil {
					bad++
					fmt.Fprintln(cmd.ErrOrStderr(), err)
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, ok\n", name, plural(file.Set.Len(), "rule"))
			}
			if bad > 0 {
				return fmt.Errorf("%d of %s wrong", bad, plural(len(files), "file"))
			}
			return nil
		},
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func newInit() *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:     "init [FILE]",
		Short:   "Write commented rules to start from",
		Example: "  weir init            # writes rules.yaml\n  weir init limits.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "rules.yaml"
			if len(args) > 0 {
				name = args[0]
			}
			flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
			if force {
				flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
			}
			if err := write(name, flags, rulefile.Example()); errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s is there already; --force overwrites it", name)
			} else if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; next: weir serve --rules %s\n", name, name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the file")
	return cmd
}

func write(name string, flags int, text []byte) error {
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of rules files, for editors",
		Example: `  weir schema > weir.schema.json
  # first line of rules.yaml:
  # yaml-language-server: $schema=weir.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(rulefile.Schema())
			return err
		},
	}
}
