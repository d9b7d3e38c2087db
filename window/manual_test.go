package window_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/weirhq/weir/internal/datatest"
)

// TestManual runs the samples of docs/explanation/windows.md.
func TestManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/explanation/windows.md")
	if err != nil {
		t.Fatal(err)
	}
	samples := regexp.MustCompile("(?s)\n```weir-script\n(.*?)```\n").FindAllSubmatch(page, -1)
	if len(samples) < 5 {
		t.Fatalf("got %d samples in docs/explanation/windows.md, want one for each kind", len(samples))
	}
	for _, sample := range samples {
		datatest.RunTestFromString(t, "docs/explanation/windows.md", string(sample[1]), runScript)
	}
}
