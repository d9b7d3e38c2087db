package rulefile_test

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/rulefile/ruletest"
)

// TestManual compares the pages about rules files with the parser: a yaml block is a rules
// file without an error, a block marked as faulty has the errors in the block
// after it, and a block of tests holds for the rules before it.
func TestManual(t *testing.T) {
	t.Parallel()
	cases, faulty, lists := 0, 0, ""
	for _, page := range []string{"reference/rules.md", "reference/errors.md", "guides/testing-rules.md"} {
		src, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := fenced(string(src))
		for _, b := range blocks {
			if b.mark == "" && strings.HasPrefix(b.text, "# from the gateway") {
				lists = b.text // what list files hold
			}
		}
		rules := (*rulefile.File)(nil)
		for i, b := range blocks {
			if b.mark == "yaml test" {
				cases += runTests(t, b, rules)
				continue
			}
			file, err := rulefile.Parse("rules.yaml", []byte(b.text), func(string) ([]byte, error) { return []byte(lists), nil })
			switch b.mark {
			case "yaml":
				rules = file
				if err != nil {
					t.Errorf("%s:%d: got\n%v\nwant no error", page, b.line, err)
				} else if err := validate(t, []byte(b.text)); err != nil {
					t.Errorf("%s:%d: got %v, want a valid file", page, b.line, err)
				}
			case "yaml fault":
				faulty++
				var faults fault.List
				if !errors.As(err, &faults) || i+1 == len(blocks) || err.Error()+"\n" != blocks[i+1].text {
					t.Errorf("%s:%d: got\n%v\nwant the text that follows", page, b.line, err)
				}
			}
		}
	}
	if cases == 0 || faulty == 0 || lists == "" {
		t.Errorf("got %d cases, %d blocks with errors, list file %q, want a manual", cases, faulty, lists)
	}
}

// TestPagesHaveNoWarnings checks all rules that the manual shows.
func TestPagesHaveNoWarnings(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("../docs", func(page string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() == "node_modules" {
			return cmp.Or(err, fs.SkipDir)
		}
		if entry.IsDir() || filepath.Ext(page) != ".md" {
			return nil
		}
		src, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, b := range fenced(string(src)) {
			if !strings.HasPrefix(b.mark, "yaml") || strings.HasSuffix(b.mark, "fault") {
				continue
			}
			file, err := rulefile.Parse("rules.yaml", []byte(b.text), func(string) ([]byte, error) { return []byte("192.0.2.0/24\n"), nil })
			if err != nil {
				continue // part of a file, or no rules
			}
			seen++
			for _, w := range file.Warnings() {
				if w.Name != "all-shadow" {
					t.Errorf("%s:%d: %v (%s)", page, b.line, w, w.Name)
				}
			}
		}
		return nil
	})
	if err != nil || seen < 50 {
		t.Errorf("got %d files with rules and error %v, want those of the manual", seen, err)
	}
}

// TestErrorsPage finds each warning in the table of the manual.
func TestErrorsPage(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range rulefile.WarningTexts() {
		if !strings.Contains(string(src), "\n| `"+name+"` |") {
			t.Errorf("warning %s is not in the table of warnings", name)
		}
		if text == "" {
			t.Errorf("warning %s has no explanation", name)
		}
	}
}

// runTests runs a block with tests of the rules in the block before it, and
// returns the number of cases.
func runTests(t *testing.T, b block, rules *rulefile.File) (cases int) {
	t.Helper()
	tests, err := rulefile.ParseTests("posts_test.yaml", []byte(b.text), func(string) (*rulefile.File, error) { return rules, nil })
	if err != nil {
		t.Fatalf("line %d: got\n%v\nwant no fault", b.line, err)
	}
	if err := validateBy(t, testsSchema, []byte(b.text)); err != nil {
		t.Errorf("line %d: got %v, want a valid file", b.line, err)
	}
	err = ruletest.Test(t.Context(), tests, func(c *ruletest.Case) {
		cases++
		for _, f := range c.Failures {
			t.Errorf("line %d: %v", b.line, f)
		}
	})
	if err != nil {
		t.Error(err)
	}
	return cases
}

// block is a fenced block of a manual, with the text after its fence.
type block struct {
	mark, text string
	line       int
}

func fenced(text string) (blocks []block) {
	inside := false
	for i, line := range strings.SplitAfter(text, "\n") {
		mark, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !inside:
			blocks = append(blocks, block{mark: mark, line: i + 1})
			inside = true
		case fence:
			inside = false
		case inside:
			blocks[len(blocks)-1].text += line
		}
	}
	return blocks
}
