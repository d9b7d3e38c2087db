package rulefile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/rulefile"
)

// TestScripts runs testdata/scripts. `file name=PATH` gives a list file its
// text; `warnings` shows the warnings about its input; `rules` reads its input as a rules file that may name them, and shows
// its content, or every fault as a person sees it; `load file=NAME` reads
// testdata/NAME.
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/scripts/*.txt", func(t *testing.T, path string) {
		files := datatest.Files{}
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "file":
				files.Add(d)
				return ""
			case "load":
				f, err := rulefile.Load("testdata/" + d.Arg("file"))
				if err != nil {
					return err.Error()
				}
				return dump(f)
			case "warnings":
				return warnings(d.Text(), files)
			case "rules":
				return read(d.Text(), files)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func read(src string, files datatest.Files) string {
	f, err := rulefile.Parse("rules.yaml", []byte(src), files.Read)
	if err != nil {
		return datatest.Refusal(err)
	}
	return dump(f)
}

// warnings shows the warnings about a file without faults.
func warnings(src string, files datatest.Files) string {
	f, err := rulefile.Parse("rules.yaml", []byte(src), files.Read)
	if err != nil {
		return datatest.Refusal(err)
	}
	var b strings.Builder
	for _, w := range f.Warnings() {
		fmt.Fprintf(&b, "%s: %v\n", w.Name, w)
	}
	return b.String()
}
