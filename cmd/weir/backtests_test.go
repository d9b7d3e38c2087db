package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var backtestBlock = regexp.MustCompile("(?s)```(yaml|sh|text) ?([a-z.]*)\n(.*?)```\n")

// TestBacktests follows docs/guides/backtests.md as a new user does: it writes the files,
// runs the commands, and compares what they print.
func TestBacktests(t *testing.T) {
	page := readFile(t, "../../docs/guides/backtests.md")
	logins := readFile(t, "../../examples/logins.jsonl.gz")
	auth := readFile(t, "../../examples/auth.log")
	t.Chdir(t.TempDir())
	files := map[string]string{"logins.jsonl.gz": logins, "auth.log": auth}
	blocks := backtestBlock.FindAllStringSubmatch(page, -1)
	for _, b := range blocks {
		if b[1] == "yaml" {
			files[b[2]] = b[3]
		}
	}
	for name, text := range files {
		writeFile(t, filepath.Clean(name), text)
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
