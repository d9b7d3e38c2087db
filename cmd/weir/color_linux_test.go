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

// What callers have sent gives a terminal no commands, and reaches a file as it is.
func TestTextOfCallers(t *testing.T) {
	t.Parallel()
	_, side := terminal(t, 80, 20)
	for _, w := range []io.Writer{side, highlighter{side}} {
		if _, ok := ofCallers(w).(harmless); !ok {
			t.Errorf("%T: got %T, want a harmless one", w, ofCallers(w))
		}
	}
	if w := ofCallers(io.Discard); w != io.Discard {
		t.Errorf("got %T, want what was given", w)
	}
	var b strings.Builder
	text := "\"\x1b]0;title\a\u009b31m\u202eé\",1\r\n" + strings.Repeat("é", 40_000) + "\nend"
	if n, err := io.Copy(harmless{&b}, strings.NewReader(text)); err != nil || n != int64(len(text)) {
		t.Errorf("got %d and %v, want %d bytes", n, err, len(text))
	}
	if want := "\"\ufffd]0;title\ufffd\ufffd31m\ufffdé\",1\r\n" + strings.Repeat("é", 40_000) + "\nend"; b.String() != want {
		t.Errorf("got %.100q, want %.100q", b.String(), want)
	}
}
