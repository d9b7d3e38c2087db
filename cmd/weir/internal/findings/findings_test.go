package findings_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/findings"
	"github.com/weirhq/weir/rulefile"
)

// A file of one long line has a thousand faults in that line. Together they must not be a thousand files.
func TestLongLinesAreLeftOut(t *testing.T) {
	t.Parallel()
	src := "rules: [" + strings.Repeat("1,", 50_000) + "]"
	_, err := rulefile.Parse("rules.yaml", []byte(src), nil)
	list, size := findings.Errors(err), 0
	for _, f := range list {
		size += len(f.Source) + len(f.Problem)
	}
	if len(list) != 1000 || size > 1<<20 {
		t.Errorf("got %d findings of %d bytes, want 1000 of at most a mebibyte", len(list), size)
	}
	_, err = rulefile.Parse("rules.yaml", []byte("rules: [1]"), nil)
	if list := findings.Errors(err); len(list) != 1 || list[0].Source != "rules: [1]" {
		t.Errorf("got %+v, want the line", list)
	}
}
