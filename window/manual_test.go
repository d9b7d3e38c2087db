package window_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/datatest"
)

// TestManual runs the examples of docs/explanation/windows.md: a limit, and calls with the
// time, what is called, and the answer, two blanks apart.
func TestManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/explanation/windows.md")
	if err != nil {
		t.Fatal(err)
	}
	samples := regexp.MustCompile("(?s)\n```text\n(.*?)```\n").FindAllSubmatch(page, -1)
	if len(samples) < 8 {
		t.Fatalf("got %d samples in docs/explanation/windows.md, want one for each kind", len(samples))
	}
	for _, sample := range samples {
		datatest.RunTestFromString(t, "docs/explanation/windows.md", script(t, string(sample[1])), runScript)
	}
}

// script turns an example of the manual into a script.
func script(t *testing.T, example string) string {
	t.Helper()
	var limit, calls, answers strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(example), "\n") {
		if i == 0 {
			limit.WriteString(line + "\n")
			continue
		}
		cells := regexp.MustCompile(` {2,}`).Split(line, 3)
		if len(cells) != 3 {
			t.Fatalf("%q has %d columns, want the time, the call and the answer", line, len(cells))
		}
		call := strings.TrimPrefix(strings.TrimPrefix(cells[1], "take 1 "), "take ")
		fmt.Fprintf(&calls, "%s %s\n", cells[0], call)
		at, _, _ := strings.Cut(line, cells[1])
		answers.WriteString(at + cells[2] + "\n")
	}
	return limit.String() + calls.String() + "----\n" + answers.String()
}
