package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/rulefile"
)

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
	if err == nil && files.HoldsSecrets(text) {
		err = fmt.Errorf("%s: holds keys or tokens, which are not shown here, and no rules", name)
	}
	return source{name, text, false}, err
}

// rules is a rules file that was read, with its name and its hash.
type rules struct {
	*rulefile.File
	name, hash string
}

// rules parses s as a rules file. For the standard input, paths of list files are
// relative to the current directory.
func (s source) rules() (*rules, error) {
	if !s.stdin {
		return loadRules(s.name)
	}
	sum := files.NewSum(s.text)
	file, err := rulefile.Parse(s.name, s.text, sum.Read)
	if err != nil {
		return nil, err
	}
	return &rules{file, s.name, sum.Text()}, nil
}

// rulesOf reads the named rules file, or the standard input for "-".
func rulesOf(cmd *cobra.Command, name string) (*rules, error) {
	if name != "-" {
		return loadRules(name)
	}
	s, err := readSource(cmd, name)
	if err != nil {
		return nil, err
	}
	return s.rules()
}

// loadRules reads the named rules file, and the list files that it names.
func loadRules(name string) (*rules, error) {
	text, err := files.Rules(name)
	if err != nil {
		return nil, fmt.Errorf("rules file: %w", err)
	}
	if err := koalafile.NotRules(name, text); err != nil {
		return nil, err
	}
	sum := files.NewSum(text)
	file, err := rulefile.Parse(name, text, func(list string) ([]byte, error) { return sum.Read(files.RelativeTo(name, list)) })
	if err != nil {
		return nil, err
	}
	return &rules{file, name, sum.Text()}, nil
}

func plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

//go:embed example.yaml
var example []byte

// JSON Schemas (draft-07) of rules files and of test files.
var (
	//go:embed weir.schema.json
	rulesSchema []byte
	//go:embed weir-test.schema.json
	testsSchema []byte
)

func newInit() *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented rules file to start from",
		Long: `Write a commented rules file to start from. Without FILE, write rules.yaml. The
schema for editors, weir.schema.json, is written to the same directory, if there is none yet.
With - for FILE, print the rules file only.`,
		Example: "  weir init            # writes rules.yaml\n  weir init limits.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "rules.yaml"
			if len(args) > 0 {
				name = args[0]
			}
			if name == "-" {
				_, err := cmd.OutOrStdout().Write(example)
				return err
			}
			flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
			if force {
				flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
			}
			if err := write(name, flags, example); errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s already exists; --force overwrites it", name)
			} else if err != nil {
				return err
			}
			schema := filepath.Join(filepath.Dir(name), "weir.schema.json")
			err := write(schema, os.O_WRONLY|os.O_CREATE|os.O_EXCL, rulesSchema)
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			wrote := name
			if err == nil {
				wrote += " and " + schema
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; next: weir serve --rules %s\n", wrote, name)
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
	tests := false
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of rules files, or of test files, for editors",
		Example: `  weir schema > weir.schema.json
  # first line of rules.yaml:
  # yaml-language-server: $schema=weir.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema := rulesSchema
			if tests {
				schema = testsSchema
			}
			_, err := cmd.OutOrStdout().Write(schema)
			return err
		},
	}
	cmd.Flags().BoolVar(&tests, "tests", false, "print the schema of test files")
	return cmd
}
