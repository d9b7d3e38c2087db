package redisstore_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
)

// The program of docs/guides/go-redis.md prints what the page says: with Redis first, and
// then without.
func TestPageAboutGo(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guides/go-redis.md")
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(page)
	outputs := regexp.MustCompile("(?s)```text\n(.*?)```").FindAllSubmatch(page, -1)
	if program == nil || len(outputs) != 2 {
		t.Fatalf("got a program %v and %d outputs, want a program and 2", program != nil, len(outputs))
	}
	n := redistest.Server(t)
	file := filepath.Join(t.TempDir(), "main.go")
	text := strings.Replace(string(program[1]), "localhost:6379?", n.Addr()+"?timeout=1m&", 1) // a crowded machine is not an outage
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range outputs {
		if got, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput(); err != nil || string(got) != string(want[1]) {
			t.Errorf("got %v\n%s\nwant\n%s", err, got, want[1])
		}
		n.Kill()
	}
}
