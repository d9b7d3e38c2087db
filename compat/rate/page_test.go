package rate_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPage finds each snippet of docs/from/x-time-rate.md in an example, which runs as a
// test, and the table and the programs that the page promises.
func TestPage(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := read("../../docs/from/x-time-rate.md")
	lines := func(text string) string { // without indentation
		return regexp.MustCompile(`(?m)^\s+`).ReplaceAllString(text, "")
	}
	examples := lines(read("example_test.go"))
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	for _, s := range snippets {
		if !strings.Contains(examples, lines(s[1])) {
			t.Errorf("not in an example:\n%s", s[1])
		}
	}
	if len(snippets) == 0 || !strings.Contains(page, "\n|---|---|\n") {
		t.Error("the page has no snippet, or no table of notions")
	}
	programs, err := os.ReadDir("../../examples/compat")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		if !strings.Contains(page, "](../../examples/compat/"+program.Name()+")") {
			t.Errorf("the page does not link to %s", program.Name())
		}
	}
}
