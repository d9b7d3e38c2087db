package httplimit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each snippet of the manual is part of an example, which runs as a test.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/guides/middleware.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	for _, pattern := range []string{"example_test.go", "../cmd/weir/internal/clienttest/example_test.go", "../grpclimit/example_test.go", "../contrib/*/example_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got no examples: %v", pattern, err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			examples.Write(src)
		}
	}
	all := unindented(examples.String())
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(snippets) < 4 {
		t.Errorf("got %d snippets, want those of the manual", len(snippets))
	}
	for _, s := range snippets {
		if !strings.Contains(all, unindented(s[1])) {
			t.Errorf("not in an example:\n%s", s[1])
		}
	}
}

// unindented returns text without the blanks at the start of its lines.
func unindented(text string) string {
	return regexp.MustCompile(`(?m)^[\t ]+`).ReplaceAllString(text, "")
}
