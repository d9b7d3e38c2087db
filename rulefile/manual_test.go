package rulefile_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/rulefile/ruletest"
)

// TestManual compares docs/reference/rules.md with the parser: a yaml block is a rules file without a
// fault, and a block marked as faulty has the faults in the block after it.
func TestManual(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../docs/reference/rules.md")
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
	blocks := fenced(string(src))
	faulty, lists := 0, ""
	for _, b := range blocks {
		if b.mark == "" && strings.HasPrefix(b.text, "# from the gateway") {
			lists = b.text // what list files hold
		}
	}
	rules, cases := (*rulefile.File)(nil), 0
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
				t.Errorf("line %d: got\n%v\nwant no fault", b.line, err)
			} else if err := validate(t, []byte(b.text)); err != nil {
				t.Errorf("line %d: got %v, want a valid file", b.line, err)
			}
		case "yaml fault":
			faulty++
			var faults fault.List
			if !errors.As(err, &faults) || i+1 == len(blocks) || err.Error()+"\n" != blocks[i+1].text {
				t.Errorf("line %d: got\n%v\nwant the text that follows", b.line, err)
			}
		}
	}
	if cases == 0 || faulty == 0 || lists == "" || len(blocks) < 10 {
		t.Errorf("got %d blocks, %d with faults, list file %q, want a manual", len(blocks), faulty, lists)
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
