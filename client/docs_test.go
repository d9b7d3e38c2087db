package client_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each snippet in Go of the manual is part of an example, which runs as a test.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/grpc.md")
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
		if !strings.Contains(unindented(examples), unindented(s[1])) {
			t.Errorf("not in an example:\n%s", s[1])
		}
	}
}
