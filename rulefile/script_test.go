package rulefile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weirhq/weir/rulefile"
)

// TestScripts runs testdata/scripts. `file name=PATH` gives a list file its
// text; `warnings` shows the warnings about its input; `rules` reads its input as a rules file that may name them, and shows
// its content, or every fault as a person sees it; `load file=NAME` reads
// testdata/NAME.
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		files := scriptFiles{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "file":
				files.add(t, d)
				return ""
			case "load":
				var name string
				d.ScanArgs(t, "file", &name)
				f, err := rulefile.Load("testdata/" + name)
				if err != nil {
					return err.Error()
				}
				return dump(f)
			case "warnings":
				return warnings(inputText(d), files)
			case "rules":
				return read(inputText(d), files)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func read(src string, files scriptFiles) string {
	f, err := rulefile.Parse("rules.yaml", []byte(src), files.read)
	if err != nil {
		return refusal(err)
	}
	return dump(f)
}

// warnings shows the warnings about a file without faults.
func warnings(src string, files scriptFiles) string {
	f, err := rulefile.Parse("rules.yaml", []byte(src), files.read)
	if err != nil {
		return refusal(err)
	}
	var b strings.Builder
	for _, w := range f.Warnings() {
		fmt.Fprintf(&b, "%s: %v\n", w.Name, w)
	}
	return b.String()
}
