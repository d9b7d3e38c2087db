package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
)

// TestRecipes follows each recipe: its rules are those in examples, its tests of them
// pass, its calls get the answers that the page shows, and its program prints what the
// page shows. Each page also has a picture of what happens over time.
func TestRecipes(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../../../docs/recipes/*.md")
	if err != nil || len(pages) < 4 {
		t.Fatalf("got pages %v and error %v, want the recipes", pages, err)
	}
	for _, page := range pages {
		example := strings.TrimSuffix(filepath.Base(page), ".md")
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			blocks := read(t, page)
			rules := "../../../../examples/" + example + ".yaml"
			text, err := os.ReadFile(rules)
			if err != nil {
				t.Fatal(err)
			}
			shown := string(text)
			for strings.HasPrefix(shown, "#") {
				_, shown, _ = strings.Cut(shown, "\n")
			}
			if len(blocks) == 0 || blocks[0].language != "yaml" || blocks[0].text != shown {
				t.Errorf("the page does not show the rules in %s:\n%s", rules, text)
			}
			if examples := start(t, withRules(rules, false)).follow(t, blocks); examples < 3 {
				t.Errorf("got %d calls, want a recipe's", examples)
			}
			program(t, blocks)
			if !followTests(t, page, shown) {
				t.Error("the page has no tests of its rules")
			}
			if !strings.Contains(readFile(t, page), "```mermaid\ntimeline\n") {
				t.Error("the page has no picture of what happens over time")
			}
		})
	}
}

// program runs the program among blocks, and compares what it prints with the
// block after it.
func program(t *testing.T, blocks []fence) {
	t.Helper()
	for i, b := range blocks {
		if b.language != "go" {
			continue
		}
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		run := exec.Command("go", "run", file)
		run.Dir = "../../../.." // where its path to the rules begins
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if want := blocks[i+1].text; string(out) != want {
			t.Errorf("the program prints\n%s\nwant\n%s", out, want)
		}
		return
	}
	t.Error("the page has no program")
}

// TestReceiptCommand runs the command of a recipe that captures the receipt in an answer.
func TestReceiptCommand(t *testing.T) {
	t.Parallel()
	program := regexp.MustCompile(`\| python3 -c '(.*)'\)`).FindStringSubmatch(readFile(t, "../../../../docs/recipes/llm-tokens.md"))
	if program == nil {
		t.Fatal("the page has no such command")
	}
	cmd := exec.Command(needtest.Program(t, "python3"), "-c", program[1])
	cmd.Stdin = strings.NewReader(`{"allowed": true, "receipt": "IImTgqQ8"}`)
	if got, err := cmd.Output(); err != nil || string(got) != "IImTgqQ8\n" {
		t.Errorf("got %q, %v", got, err)
	}
}
