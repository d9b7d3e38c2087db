package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A release has a manual page for each command.
func TestManualPages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("building weir with its manual takes seconds")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "run", "-tags", "man", ".", "man", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil || !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s: got page %q, %v", cmd.CommandPath(), page, err)
		}
		for _, c := range cmd.Commands() {
			if !c.Hidden {
				visit(c)
			}
		}
	}
	visit(newRoot())
}
