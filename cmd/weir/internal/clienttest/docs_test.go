package clienttest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each snippet in Go of the manual that is no program is part of an example, which
// runs as a test.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/reference/grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	unindented := func(b []byte) string { return regexp.MustCompile(`(?m)^[\t ]+`).ReplaceAllString(string(b), "") }
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(snippets) != 3 {
		t.Errorf("got %d snippets, want those of the manual", len(snippets))
	}
	for _, s := range snippets {
		if bytes.HasPrefix(s[1], []byte("package main\n")) {
			continue // TestProgram runs it
		}
		if !strings.Contains(unindented(examples), unindented(s[1])) {
			t.Errorf("not in an example:\n%s", s[1])
		}
	}
}

// The program of the manual prints what the manual shows.
func TestProgram(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/reference/grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n\n```text\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("the manual has no program")
	}
	address, stop := service()
	defer stop()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, bytes.Replace(m[1], []byte("127.0.0.1:8082"), []byte(address), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := exec.Command("go", "run", file).CombinedOutput(); err != nil || string(got) != string(m[2]) {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, m[2])
	}
}
