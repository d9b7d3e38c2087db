package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/needtest"
)

// TestUnit lets systemd check the unit: that it knows every line, and how exposed
// the service is. The unit itself does not run here.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze := needtest.Program(t, "systemd-analyze")
	src, err := os.ReadFile("../../deploy/systemd/weir.service")
	if err != nil {
		t.Fatal(err)
	}
	weir, err := exec.LookPath("weir") // the program of these tests
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "weir.service")
	text := strings.ReplaceAll(string(src), "/usr/local/bin/weir", weir)
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), unit) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err = exec.Command(analyze, "security", "--offline=yes", "--no-pager", unit).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for \S+ ([0-9.]+) `).FindSubmatch(out)
	if m == nil {
		t.Fatalf("systemd-analyze security: %v\n%s", err, out)
	}
	if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level > 2 {
		t.Errorf("got exposure %v %v, want at most 2\n%s", level, err, out)
	}

	// Its command line is one that weir accepts, but for the files.
	line := regexp.MustCompile(`(?m)^ExecStart=\S+ serve (.*)$`).FindSubmatch(src)
	if line == nil {
		t.Fatal("got no ExecStart")
	}
	args := strings.NewReplacer("/etc/weir/rules.yaml", filepath.Join(t.TempDir(), "none.yaml"), "/run/weir/", t.TempDir()+"/").Replace(string(line[1]))
	var errs strings.Builder
	if code := run(append([]string{"serve"}, strings.Fields(args)...), strings.NewReader(""), &errs, &errs); code != exitError || !strings.Contains(errs.String(), "none.yaml: no such file") {
		t.Errorf("weir serve %s: got %d %s, want that only the rules are missing", args, code, errs.String())
	}
}
