package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/rulefmt"
)

func newFmt() *cobra.Command {
	write := false
	cmd := &cobra.Command{
		Use:   "fmt FILE…",
		Short: "Format rules files",
		Long: `Print rules files in their usual form: indented by two spaces, one space after each
comma and colon, no spaces at the ends of lines. Comments, quotes and the order of keys
stay. FILE may be - for the standard input. A file with errors is not formatted; they are
printed as weir check does.`,
		Example: `  weir fmt rules.yaml
  weir fmt -w rules.yaml rules/*.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			colour(cmd)
			var errs []error
			for _, name := range names {
				errs = append(errs, format(cmd, name, write))
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the files, and print the names of those that change")
	return cmd
}

// format prints a rules file in its usual form, or writes it.
func format(cmd *cobra.Command, name string, write bool) error {
	in, err := readSource(cmd, name)
	if err != nil {
		return err
	}
	if _, err := in.rules(); err != nil {
		return err
	}
	text, err := rulefmt.Format(in.name, in.text)
	switch {
	case err != nil:
		return err
	case !write || in.stdin:
		_, err = cmd.OutOrStdout().Write(text)
	case !bytes.Equal(text, in.text):
		if err = replace(name, text); err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), name)
		}
	}
	return err
}

// replace makes text the content of a file, or of the one that a link leads to. A service may read it at any time.
func replace(name string, text []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return files.Replace(name, text, info)
}
