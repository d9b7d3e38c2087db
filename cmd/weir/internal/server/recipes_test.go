package server_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/rulefile/ruletest"
)

// TestRecipes follows each recipe: its rules are those in examples the tests and
// the program beside them do what they say, and its calls get the answers that the page
// shows. A page is short, links to its files, and has a picture of what
// happens over time.
func TestRecipes(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../../../docs/recipes/*.md")
	if err != nil || len(pages) < 12 {
		t.Fatalf("got pages %v and error %v, want the recipes", pages, err)
	}
	for _, page := range pages {
		example := strings.TrimSuffix(filepath.Base(page), ".md")
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			const examples = "../../../../examples/"
			blocks, text := read(t, page), readFile(t, page)
			rules := examples + example + ".yaml"
			shown := readFile(t, rules)
			for strings.HasPrefix(shown, "#") {
				_, shown, _ = strings.Cut(shown, "\n")
			}
			if len(blocks) == 0 || blocks[0].language != "yaml" || blocks[0].text != shown {
				t.Errorf("the page does not show the rules in %s:\n%s", rules, shown)
			}
			kept := strings.Contains(text, "`weir serve --rules examples/"+example+".yaml --data counters`")
			if !kept && !strings.Contains(text, "`weir serve --rules examples/"+example+".yaml`") {
				t.Error("the page does not say how to serve its rules")
			}
			if !kept && strings.Contains(shown, "window: ever") {
				t.Error("the page serves counts that must last from memory")
			}
			s := start(t, func(c *config.Config) {
				if c.Rules = rules; kept {
					c.Data = t.TempDir()
				}
			})
			redistest.Eventually(t, "the service is ready", func() bool { return call(t, "GET", s.api+"/readyz", "").status == 200 })
			if s.follow(t, blocks) < 1 {
				t.Error("the page has no call")
			}
			ruletest.Run(t, examples+example+"_test.yaml")
			program(t, "examples/"+example+".go")
			for _, linked := range []string{example + "_test.yaml", example + ".go"} {
				if !strings.Contains(text, "](../../examples/"+linked+")") {
					t.Errorf("the page does not link to %s", linked)
				}
			}
			if !strings.Contains(text, "```mermaid\ntimeline\n") {
				t.Error("the page has no picture of what happens over time")
			}
			if lines := strings.Count(text, "\n"); lines > 70 {
				t.Errorf("the page has %d lines, want at most 70", lines)
			}
		})
	}
}

// program runs a program of the project, and compares what it prints with the comment
// at its end.
func program(t *testing.T, path string) {
	t.Helper()
	const root = "../../../.." // where its path to the rules begins
	source := readFile(t, filepath.Join(root, path))
	_, comment, ok := strings.Cut(source, "\n// It prints:\n//\n// ")
	if !ok {
		t.Fatalf("%s does not say what it prints", path)
	}
	run := exec.Command("go", "run", path)
	run.Dir = root
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := strings.ReplaceAll(comment, "\n// ", "\n"); string(out) != want {
		t.Errorf("%s prints\n%s\nwant\n%s", path, out, want)
	}
}
