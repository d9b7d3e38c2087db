//go:build unix

package server_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
)

// oddFiles makes files that must not be read, and returns their paths.
func oddFiles(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	pipe, zero, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "zero"), filepath.Join(dir, "large")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", zero); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil { // takes no room on the disk
		t.Fatal(err)
	}
	return map[string]string{pipe: "a pipe, want a regular file", zero: "a device, want a regular file", large: "larger than ", dir: "a directory, want a regular file"}
}

// A rules file or a list that is no regular file, or too large, is an error at once.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	for path, want := range oddFiles(t) {
		c := config.Default()
		c.Listen, c.Admin, c.Rules = "127.0.0.1:0", "127.0.0.1:0", path
		alone := want
		if strings.HasPrefix(want, "a directory") {
			alone = "holds no rules file" // NAME.yaml
		}
		if err := server.Run(context.Background(), c, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), alone) {
			t.Errorf("rules %s: got %v, want %s", path, err, want)
		}
		const listed = "lists: {bad: {file: %q}}\nrules:\n  - {name: a, when: {user: {in: bad}}, then: deny}\n"
		c.Rules = rulesFile(t, fmt.Sprintf(listed, path))
		if err := server.Run(context.Background(), c, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("list %s: got %v, want %s", path, err, want)
		}

		// A service that runs keeps its rules, answers, and ends.
		rules := rulesFile(t, "rules: [{name: posts, per: [user], limit: 5, window: 1h}]\n")
		s := start(t, withRules(rules, false))
		write(t, rules, fmt.Sprintf(listed, path))
		if a := call(t, "POST", s.admin+"/-/reload", ""); a.status != 422 || !strings.Contains(a.text, want) {
			t.Errorf("list %s: got %d %s, want %s", path, a.status, a.text, want)
		}
		if ok, _ := s.post(t, "42"); !ok {
			t.Errorf("list %s: got denied, want the old rules", path)
		}
		if err := s.stop(); err != nil {
			t.Errorf("list %s: %v", path, err)
		}
	}
}
