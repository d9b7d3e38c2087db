package rulefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

// FuzzParse checks that reading any bytes gives a file, or faults with a place in the source, and that rules read one by one are the
// same as those of the file as a whole. Run it with -fuzzminimizetime=20x: the inputs are
// long, and making each new one small takes longer than finding it.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range append(seeds, "../cmd/weir/example.yaml") {
		src, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, []byte("192.0.2.1\n10.0.0.0/99"))
		f.Add([]byte(strings.ReplaceAll(string(src), "\n", "\r\n")), []byte{})
	}
	f.Add([]byte("\ufefflists: {a: {file: b}}\nrules: [{name: a, when: {b: {in: a}}, then: deny}]"), []byte("\xff\n#\n"))
	f.Add([]byte("rules: [{name: a, when: {b: {not: {not: {not: c}}}}, limit: .inf, window: 1e9h}]\n...\n"), []byte("a"))
	f.Add([]byte("rules:\n- ? a\n  : b\n---\n%YAML 1.2\n"), []byte{})
	f.Add([]byte("rules: |\n  text\r\t- \x00"), []byte{})
	f.Add([]byte("rules:\n- {name: a, limit: 1, window: 1m\n}\n- name: b\n  limit: 1\n  window: 1m\n\n# comment\nunmatched: deny"), []byte{})
	f.Add([]byte("rules: # all\n  - name: |+\n     a\n\n  - name: \"b\n  - c\"\n   # end\n...\n"), []byte{})
	f.Add([]byte(`rules: [{name: a, limit: {by: x, "b\u0001": x}, window: 1m}]`), []byte{})
	f.Fuzz(func(t *testing.T, src, list []byte) {
		read := func(string) ([]byte, error) { return list, nil }
		file, err := rulefile.Parse("rules.yaml", src, read)
		if whole, wrong := rulefile.Parse("rules.yaml", inOnePart(src), read); wrong == nil && !reflect.DeepEqual(rulesOf(file), rulesOf(whole)) {
			t.Fatalf("got %+v, %v of %q, want %+v as without parts", rulesOf(file), err, src, rulesOf(whole))
		} else if err == nil && wrong != nil {
			t.Fatalf("got no fault in %q, want that without parts: %v", src, wrong)
		}
		if err == nil {
			if file == nil || file.Set == nil || file.Zone == nil {
				t.Fatalf("got file %+v without an error, want it whole", file)
			}
			return
		}
		var faults fault.List
		if !errors.As(err, &faults) || len(faults) == 0 || file != nil {
			t.Fatalf("got %+v, %T %v, want only faults", file, err, err)
		}
		lines := 1 + strings.Count(string(src), "\n") + strings.Count(string(src), "\r")
		inList := 1 + strings.Count(string(list), "\n")
		for _, f := range faults {
			if f.Place.Column < 1 || f.Place.Line < 1 || f.Place.File == "rules.yaml" && f.Place.Line > lines || f.Place.File != "rules.yaml" && f.Place.Line > inList {
				t.Errorf("got %s:%d:%d for %q, want a place in the source", f.Place.File, f.Place.Line, f.Place.Column, src)
			}
			if f.Problem == "" || !strings.Contains(err.Error(), f.Summary()) {
				t.Errorf("got %q, want it to say %q", err, f.Summary())
			}
		}
	})
}

// inOnePart returns a rules file with the key rules in quotes, so that its rules are parsed as a whole.
func inOnePart(src []byte) []byte {
	return regexp.MustCompile(`(?m)^rules:`).ReplaceAll(src, []byte(`"rules":`))
}

// rulesOf returns the rules of file, or nil without a file.
func rulesOf(file *rulefile.File) (all []rule.Rule) {
	if file == nil {
		return nil
	}
	for i := range file.Set.Len() {
		all = append(all, *file.Set.Rule(i))
	}
	return all
}
