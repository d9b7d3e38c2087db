package xtime_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrograms runs each program in examples/compat as it is, and with nothing changed but the
// import: both print what the comment at its end says.
func TestPrograms(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("../../examples/compat/*.go")
	if err != nil || len(programs) < 3 {
		t.Fatalf("got programs %v and error %v, want three or more", programs, err)
	}
	for _, program := range programs {
		source, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		_, comment, ok := strings.Cut(string(source), "\n// It prints:\n//\n// ")
		if want := strings.ReplaceAll(comment, "\n// ", "\n"); ok {
			t.Run(filepath.Base(program), func(t *testing.T) {
				t.Parallel()
				prints(t, string(source), want)
				changed := strings.ReplaceAll(string(source), `"`+weirPath+`"`, `"`+xtimePath+`"`)
				if changed == string(source) {
					t.Error("the program does not import compat/rate")
				}
				prints(t, changed, want)
			})
			continue
		}
		t.Errorf("%s does not say what it prints", program)
	}
}

// prints runs a program with the modules that this one requires.
func prints(t *testing.T, source, want string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(out)) {
		lines.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if lines.String() != want {
		t.Errorf("got\n%s\nwant\n%s", lines.String(), want)
	}
}
