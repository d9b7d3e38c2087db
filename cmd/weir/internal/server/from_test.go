package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/rulefile/ruletest"
)

// TestFrom follows each page for users of another limiter: its rules are valid,
// the decisions in its test file are those of the rules, and its calls get the
// answers that the page shows. koala.md is followed in cmd/weir, and x-time-rate.md, which
// is about Go alone, in compat/rate.
func TestFrom(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../../../docs/from/*.md")
	if err != nil || len(pages) < 17 {
		t.Fatalf("got pages %v and error %v, want one for each limiter", pages, err)
	}
	index := readFile(t, "../../../../docs/from/README.md")
	for _, page := range pages {
		name := filepath.Base(page)
		if name == "README.md" {
			continue
		}
		if !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/from/README.md does not link to %s", name)
		}
		if name == "koala.md" || name == "x-time-rate.md" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blocks := read(t, page)
			if len(blocks) == 0 || blocks[0].language != "yaml" {
				t.Fatalf("got %d blocks, want rules first", len(blocks))
			}
			if !strings.Contains(readFile(t, page), "\n|---|---|\n") {
				t.Error("the page has no table of notions and rules")
			}
			if !followTests(t, page, blocks[0].text) {
				t.Error("the page has no tests of its rules")
			}
			if start(t, withRules(rulesFile(t, blocks[0].text), false)).follow(t, blocks) < 1 {
				t.Error("the page has no calls")
			}
		})
	}
}

var testFence = regexp.MustCompile("(?s)```yaml test\n(.*?)```\n")

// followTests runs the test files in page against rules. It reports whether the
// page has one.
func followTests(t *testing.T, page, rules string) bool {
	t.Helper()
	files := testFence.FindAllStringSubmatch(readFile(t, page), -1)
	for _, m := range files {
		dir := t.TempDir()
		for name, text := range map[string]string{"rules.yaml": rules, "rules_test.yaml": m[1]} {
			write(t, filepath.Join(dir, name), text)
		}
		ruletest.Run(t, filepath.Join(dir, "rules_test.yaml"))
	}
	return len(files) > 0
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
