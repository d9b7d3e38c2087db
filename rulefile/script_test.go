package rulefile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weirhq/weir/rulefile"
)

// TestScripts runs testdata/scripts. `file name=PATH` gives a list file its
// text; `rules` reads its input as a rules file that may name them, and shows
// what it says, or every fault as a person sees it; `load file=NAME` reads
// testdata/NAME.
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		files := map[string]string{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "file":
				var name string
				d.ScanArgs(t, "name", &name)
				files[name] = unescape(d)
				return ""
			case "load":
				var name string
				d.ScanArgs(t, "file", &name)
				f, err := rulefile.Load("testdata/" + name)
				if err != nil {
					return err.Error()
				}
				return dump(f)
			case "rules":
				return read(unescape(d), files)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// unescape is a command's input; with the argument escaped, \t \r \n and \xNN
// stand for what a script cannot hold.
func unescape(d *datadriven.TestData) string {
	if !d.HasArg("escaped") {
		return d.Input + "\n"
	}
	var text string
	_, err := fmt.Sscanf(`"`+strings.ReplaceAll(strings.ReplaceAll(d.Input, "\n", ""), `"`, `\"`)+`"`, "%q", &text)
	if err != nil {
		return err.Error()
	}
	return text
}

func read(src string, files map[string]string) string {
	f, err := rulefile.Parse("rules.yaml", []byte(src), func(path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	})
	var faults rulefile.Faults
	switch {
	case err == nil:
		return dump(f)
	case errors.As(err, &faults):
		return faults.Error() + "\n"
	}
	return fmt.Sprintf("got %T, want rulefile.Faults: %v", err, err)
}
