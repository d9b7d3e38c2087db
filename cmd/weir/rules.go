package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/koala"
	"github.com/weirhq/weir/rulefile"
)

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE…",
		Short: "Check rules files and print every fault",
		Long: `Check rules files and the list files that they name. Every fault is printed with
its place (file:line:column), the line itself, and what was expected. FILE may be
- for the standard input.

Koala's rule file and main file are checked, too: a file with a line [rules] or
rule_file = PATH is one of them. Warnings show where koala decides differently.

To ask a service whether an action may happen, use weir take --check.`,
		Example: "  weir check rules.yaml\n  weir check koala_rule.conf",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			bad := 0
			for _, name := range files {
				if err := checkFile(cmd, name); err != nil {
					bad++
					fmt.Fprintln(cmd.ErrOrStderr(), err)
				}
			}
			if bad > 0 {
				return fmt.Errorf("faults in %d of %s", bad, plural(len(files), "file"))
			}
			return nil
		},
	}
}

// checkFile checks a file and prints its number of rules, and its warnings.
func checkFile(cmd *cobra.Command, name string) error {
	in, err := readSource(cmd, name)
	if err != nil {
		return err
	}
	if !koala.Is(in.text) {
		file, err := in.rules()
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, ok\n", in.name, plural(file.Set.Len(), "rule"))
		return nil
	}
	site, err := koala.Read(in.name, in.text, in.stdin)
	printWarnings(cmd.ErrOrStderr(), site.Warnings)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %s, ok\n",
		site.Name, plural(site.Set.Len(), "koala rule"), plural(len(site.Warnings), "warning"))
	return nil
}

// source is a file named on the command line.
type source struct {
	name  string // in faults
	text  []byte
	stdin bool
}

// readSource reads the named file, or the standard input for "-".
func readSource(cmd *cobra.Command, name string) (source, error) {
	if name == "-" {
		text, err := io.ReadAll(cmd.InOrStdin())
		return source{"stdin", text, true}, err
	}
	text, err := os.ReadFile(name)
	return source{name, text, false}, err
}

// rules parses s as a rules file. For the standard input, paths of list files are
// relative to the current directory.
func (s source) rules() (*rulefile.File, error) {
	if s.stdin {
		return rulefile.Parse(s.name, s.text, os.ReadFile)
	}
	return rulefile.Load(s.name)
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
		Short:   "Write a commented rules file to start from",
		Long:    "Write a commented rules file to start from. Without FILE, write rules.yaml.",
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
				return fmt.Errorf("%s already exists; --force overwrites it", name)
			} else if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; next: weir serve --rules %s\n", name, name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
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
