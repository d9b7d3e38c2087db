package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Faults, warnings and results have colours in a terminal, unless these are turned off.
func TestColours(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"bad.yaml":    "rules:\n  - {name: posts, limt: 5}\n",
		"ok.yaml":     "rules:\n  - {name: all, then: deny}\n  - {name: posts, per: [user], limit: 5, window: 1h}\n",
		"t_test.yaml": "rules: ok.yaml\ncases:\n  - {name: one, steps: [{take: {user: ann}, expect: {outcome: deny}}]}\n",
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	const red, yellow, green = "\x1b[31m", "\x1b[33m", "\x1b[32m"
	for _, tc := range []struct {
		args []string
		env  string
		want []string // empty: no colour
	}{
		{args: []string{"check", "bad.yaml"}, want: []string{red + "weir:", "^\x1b[0m"}},
		{args: []string{"check", "ok.yaml"}, want: []string{green + ", ok", yellow + "warning:"}},
		{args: []string{"test", "t_test.yaml"}, want: []string{green + "ok"}},
		{args: []string{"check", "bad.yaml", "--no-color"}},
		{args: []string{"check", "bad.yaml"}, env: "NO_COLOR=1"},
		{args: []string{"check", "bad.yaml"}, env: "TERM=dumb"},
	} {
		screen, side := terminal(t, 80, 20)
		cmd := exec.Command("weir", tc.args...) // which TestMain provides
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, side, side
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "NO_COLOR=") || strings.HasPrefix(s, "TERM=") }), "TERM=xterm", tc.env)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = side.Close()
		b, _ := io.ReadAll(screen) // it ends with an error, when the program does
		_ = cmd.Wait()             // the error is that of faults
		for _, want := range tc.want {
			if !strings.Contains(string(b), want) {
				t.Errorf("%v: got %q, want %q", tc.args, b, want)
			}
		}
		if len(tc.want) == 0 && strings.Contains(string(b), "\x1b") {
			t.Errorf("%v %s: got %q, want no colours", tc.args, tc.env, b)
		}
	}
}
