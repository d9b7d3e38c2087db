package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// writePage writes the page of a report to a file.
func writePage(name, command string, r any) (err error) {
	var b bytes.Buffer
	switch r := r.(type) {
	case *replay.Report:
		err = page.Replay(&b, r, command)
	case *replay.Comparison:
		err = page.Comparison(&b, r, command)
	case *replay.Suggestion:
		err = page.Suggestion(&b, r, command)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// commandLine returns how a command was called, without where it writes.
func commandLine(cmd *cobra.Command, args []string) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "html" && f.Name != "json" {
			words = append(words, "--"+f.Name, strings.Trim(f.Value.String(), "[]"))
		}
	})
	return strings.Join(append(words, args...), " ")
}
