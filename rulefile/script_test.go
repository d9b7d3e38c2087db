package rulefile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

// TestScripts runs testdata/scripts. `file name=PATH` gives a list file its
// text; `warnings` shows the warnings about its input; `rules` reads its input as a rules file that may name them, and shows
// what it says, or every fault as a person sees it; `load file=NAME` reads
// testdata/NAME; `write` reads its input and shows it as it is written back.
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
			case "write":
				return writeBack(inputText(d))
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

// writeBack reads a rules file and writes it again, with its lists as files.
func writeBack(src string) string {
	lists := map[string]string{}
	f, err := rulefile.Parse("rules.yaml", []byte(src), func(path string) ([]byte, error) {
		lists[strings.TrimSuffix(path, ".txt")] = path
		return nil, nil
	})
	if err != nil {
		return err.Error()
	}
	d := rulefile.Draft{Zone: f.Zone, Addresses: f.Set.Compiled().Addresses(), Outcomes: map[string]rule.Outcome{}}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		d.Lists = append(d.Lists, rulefile.ListSource{Name: name, File: lists[name]})
	}
	for i := range f.Set.Len() {
		r := f.Set.Rule(i)
		d.Rules = append(d.Rules, *r)
		if o, ok := f.Set.Outcome(r.Then); ok && r.Then != rule.Allow && r.Then != rule.Deny {
			d.Outcomes[r.Then] = o
		}
	}
	text, err := rulefile.Write(&d)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
