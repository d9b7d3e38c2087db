package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var backtestBlock = regexp.MustCompile("(?s)```(yaml|sh|text) ?([a-z.]*)\n(.*?)```\n")

// TestBacktests follows docs/guides/backtests.md as a new user does: it writes the files,
// runs the commands, and compares what they print.
func TestBacktests(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/backtests.md")
	if err != nil {
		t.Fatal(err)
	}
	logins, err := os.ReadFile("../../examples/logins.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	auth, err := os.ReadFile("../../examples/auth.log")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	files := map[string]string{"logins.jsonl.gz": string(logins), "auth.log": string(auth)}
	blocks := backtestBlock.FindAllStringSubmatch(string(page), -1)
	for _, b := range blocks {
		if b[1] == "yaml" {
			files[b[2]] = b[3]
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Clean(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	printed, commands := "", 0
	for _, b := range blocks {
		switch b[1] {
		case "sh":
			commands++
			var out, errs bytes.Buffer
			args := strings.Fields(strings.TrimPrefix(strings.TrimSpace(b[3]), "weir "))
			if status := run(args, strings.NewReader(""), &out, &errs); status != 0 {
				t.Errorf("%v: got status %d: %s", args, status, errs.String())
			}
			printed = out.String()
		case "text":
			if b[3] != printed {
				t.Errorf("the page shows\n%s\nthe command prints\n%s", b[3], printed)
			}
		}
	}
	if commands < 5 {
		t.Errorf("got %d commands, want those of the page", commands)
	}
}
