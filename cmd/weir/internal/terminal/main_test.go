package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

var waits = regexp.MustCompile(`(\d+h)?(\d+m)?[\d.]+s\b| +`)

// TestPicture compares the picture in the README with a new session, without the
// waits.
func TestPicture(t *testing.T) {
	t.Parallel()
	weir := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.Command("go", "build", "-o", weir, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines, err := session(weir)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("../../../../docs/images/terminal.svg")
	if err != nil {
		t.Fatal(err)
	}
	got, want := waits.ReplaceAllString(draw(lines), "…"), waits.ReplaceAllString(string(shown), "…")
	if got != want {
		t.Errorf("the session is\n%s\nthe picture has\n%s\nrun go run ./cmd/weir/internal/terminal WEIR docs/images/terminal.svg", got, want)
	}
}
