package rule_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryTestHasForm checks that FormOf knows each type of test, so that importers, the linter
// and explanations know a new matcher, too.
func TestEveryTestHasForm(t *testing.T) {
	t.Parallel()
	forms, err := os.ReadFile("matcher_form.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("matcher_*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	holds := regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?(\w+)\) Holds\(`)
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range holds.FindAllStringSubmatch(string(src), -1) {
			found++
			if !strings.Contains(string(forms), "case "+m[1]+":") {
				t.Errorf("FormOf has no case for %s", m[1])
			}
		}
	}
	if found < 9 {
		t.Errorf("got %d tests, want all of the package", found)
	}
}
